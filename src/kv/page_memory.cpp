#include "kv/page_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace wok {

Result<PageMemory> PageMemory::create(const KvShape& shape, int32_t pages) {
  PageMemory memory;
  memory.shape_ = shape;
  memory.pages_ = pages;
  memory.bytes_ = shape.page_bytes() * static_cast<size_t>(pages);
  void* data =
      ::mmap(nullptr, memory.bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorKind::kNoMemory,
                 fmt::format("cannot reserve {} MiB for the KV cache: {}; give less with "
                             "--kv-memory or a shorter --context",
                             memory.bytes_ >> 20, std::strerror(errno))};
  }
  ::madvise(data, memory.bytes_, MADV_HUGEPAGE);  // a hint; without it pages are merely smaller
  memory.data_ = static_cast<uint8_t*>(data);
  return memory;
}

PageMemory::PageMemory(PageMemory&& other) noexcept {
  *this = std::move(other);
}

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(pages_, other.pages_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void PageMemory::populate(int32_t first, int32_t count) const {
#ifdef MADV_POPULATE_WRITE
  const auto step = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = shape_.page_bytes() * static_cast<size_t>(first) / step * step;
  const size_t end = std::min(bytes_, shape_.page_bytes() * static_cast<size_t>(first + count));
  ::madvise(data_ + begin, end - begin, MADV_POPULATE_WRITE);  // Linux before 5.14: refused
#else
  (void)first, (void)count;
#endif
}

PageMemory::~PageMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace wok
