#include "models/pack_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "models/pack_write.h"

namespace wok {
namespace {

constexpr size_t kPageMask = 4095;

// Whether most of the mapping would have to come from the disk, told from the samples' pages.
// mincore() reports all pages of another user's file as resident.
bool is_cold(const uint8_t* weights, size_t bytes) {
  size_t resident = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    const uint8_t* at = weights + sample_offset(i, bytes);
    unsigned char state = 0;
    ::mincore(const_cast<uint8_t*>(at - (reinterpret_cast<uintptr_t>(at) & kPageMask)), 1, &state);
    resident += state & 1;
  }
  return resident < kSamples / 2;
}

// Asks for all pages before the first token meets them one by one. In huge ones where the file
// system can; without MADV_POPULATE_READ (Linux 5.14) only the reading ahead is left.
void populate(uint8_t* data, size_t bytes, ComputePool& pool) {
  const size_t chunks = (bytes + kSumChunkBytes - 1) / kSumChunkBytes;
  pool.run(static_cast<int32_t>(chunks), [&](int32_t i, int32_t) {
    uint8_t* at = data + i * kSumChunkBytes;
    const size_t size = std::min(kSumChunkBytes, bytes - i * kSumChunkBytes);
    if (::madvise(at, size, MADV_POPULATE_READ) != 0) ::madvise(at, size, MADV_WILLNEED);
  });
}

std::string sum_problem(const PackHeader& header, std::span<const uint8_t> weights, bool whole,
                        ComputePool& pool) {
  if (sample_sum(weights) != header.sample_sum) {
    return "its weights are not what was written (sampled checksum)";
  }
  if (whole && whole_sum(weights, pool) != header.whole_sum) {
    return "its weights are not what was written (checksum)";
  }
  return "";
}

// The header of an open file of `size` bytes, or what is wrong with it.
Result<PackHeader> read_header(int fd, const PackId& id, size_t& size) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return invalid("it is no regular file");
  size = static_cast<size_t>(info.st_size);
  PackHeader header{};
  const ssize_t got = ::pread(fd, &header, sizeof(header), 0);
  if (got < 0) return io_error(fmt::format("it cannot be read: {}", std::strerror(errno)));
  std::string problem = header_problem(
      {reinterpret_cast<const uint8_t*>(&header), static_cast<size_t>(got)}, size, id);
  if (!problem.empty()) return invalid(std::move(problem));
  return header;
}

// Closes at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<PackMemory> PackMemory::map(const std::string& path, const PackId& id, bool verify,
                                   ComputePool& pool) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0 && errno == ENOENT) return not_found(fmt::format("there is no '{}'", path));
  if (file.fd < 0) return io_error(fmt::format("it cannot be opened: {}", std::strerror(errno)));
  size_t size = 0;
  WOK_TRY(header, read_header(file.fd, id, size));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (data == MAP_FAILED) {
    return io_error(fmt::format("it cannot be mapped: {}", std::strerror(errno)));
  }
  PackMemory memory;
  memory.data_ = static_cast<uint8_t*>(data);
  memory.mapped_ = size;
  memory.from_file_ = true;
  memory.path_ = path;
  ::madvise(data, size, MADV_HUGEPAGE);
  const bool whole = verify || is_cold(memory.data(), memory.bytes());
  populate(memory.data_, size, pool);
  std::string problem = sum_problem(header, {memory.data(), memory.bytes()}, whole, pool);
  if (!problem.empty()) return invalid(std::move(problem));
  return memory;
}

Result<PackMemory> PackMemory::open(const std::string& dir, const PackId& id, PackMode mode,
                                    ComputePool& pool, const std::function<void(uint8_t*)>& fill) {
  const std::string path = dir + "/" + pack_file_name(id);
  if (!dir.empty() && mode != PackMode::kRebuild) {
    Result<PackMemory> mapped = map(path, id, mode == PackMode::kVerify, pool);
    if (mapped.ok() || (mode == PackMode::kVerify && mapped.error().kind == ErrorKind::kNotFound)) {
      return mapped;
    }
    const std::string& problem = mapped.error().message;
    if (mode == PackMode::kVerify) {
      return invalid(fmt::format("pack file '{}' is not good: {}", path, problem));
    }
    if (mapped.error().kind != ErrorKind::kNotFound) {
      log::warn("pack file '{}' is not used: {}; the weights are packed again", path, problem);
    }
  }
  WOK_CHECK(mode != PackMode::kVerify, "only a kept pack can be verified");

  // Packed in anonymous memory first: huge pages, and a full disk cannot raise SIGBUS half-way.
  PackMemory memory;
  memory.mapped_ = kPackHeaderBytes + id.bytes;
  void* data =
      ::mmap(nullptr, memory.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorKind::kNoMemory, fmt::format("cannot get {} MiB for the weights: {}",
                                                   memory.mapped_ >> 20, std::strerror(errno))};
  }
  ::madvise(data, memory.mapped_, MADV_HUGEPAGE);
  memory.data_ = static_cast<uint8_t*>(data);
  const auto begin = std::chrono::steady_clock::now();
  fill(memory.data_ + kPackHeaderBytes);
  memory.packing_s_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!dir.empty()) {
    const PackHeader header = make_pack_header(id, {memory.data(), memory.bytes()}, pool);
    std::memcpy(memory.data_, &header, sizeof(header));
    const Status written = write_pack(dir, pack_file_name(id), {memory.data_, memory.mapped_});
    if (written.ok()) memory.path_ = path;
    if (!written.ok()) memory.not_kept_ = written.error().message;
  }
  ::mprotect(data, memory.mapped_, PROT_READ);
  return memory;
}

PackMemory::PackMemory(PackMemory&& other) noexcept {
  *this = std::move(other);
}

PackMemory& PackMemory::operator=(PackMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  std::swap(from_file_, other.from_file_);
  std::swap(packing_s_, other.packing_s_);
  std::swap(path_, other.path_);
  std::swap(not_kept_, other.not_kept_);
  return *this;
}

PackMemory::~PackMemory() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

}  // namespace wok
