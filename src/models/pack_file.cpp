#include "models/pack_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"

namespace wok {
namespace {

constexpr size_t kHeaderBytes = 4096;
constexpr char kMagic[16] = "wok pack v1\n";

struct Header {
  char magic[16];
  uint64_t bytes;
  char key[256];
};

bool header_matches(const uint8_t* data, size_t size, const std::string& key, size_t bytes) {
  if (size != kHeaderBytes + bytes) return false;
  Header header;
  std::memcpy(&header, data, sizeof(header));
  return std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 && header.bytes == bytes &&
         std::strncmp(header.key, key.c_str(), sizeof(header.key)) == 0;
}

// Removes what a start that was killed while writing this pack left behind. The name holds the
// writer's process id; one that still lives is left alone.
void remove_abandoned(const std::string& dir, const std::string& key) {
  const std::string prefix = key + ".pack.";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(".part")) continue;
    const long pid = std::strtol(name.c_str() + prefix.size(), nullptr, 10);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

}  // namespace

Result<PackMemory> PackMemory::open(const std::string& dir, const std::string& key, size_t bytes,
                                    const std::function<void(uint8_t*)>& fill) {
  PackMemory memory;
  memory.mapped_ = kHeaderBytes + bytes;
  memory.offset_ = kHeaderBytes;
  const std::string path = dir + "/" + key + ".pack";
  if (!dir.empty()) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd >= 0 && ::fstat(fd, &info) == 0 && static_cast<size_t>(info.st_size) == memory.mapped_) {
      void* data = ::mmap(nullptr, memory.mapped_, PROT_READ, MAP_SHARED, fd, 0);
      if (data != MAP_FAILED) {
        memory.data_ = static_cast<uint8_t*>(data);
        if (header_matches(memory.data_, memory.mapped_, key, bytes)) {
          ::close(fd);
          memory.from_file_ = true;
          return memory;
        }
        ::munmap(data, memory.mapped_);
        memory.data_ = nullptr;
      }
    }
    if (fd >= 0) ::close(fd);
  }

  // Packed in anonymous memory first: huge pages, and a full disk cannot raise SIGBUS half-way.
  void* data =
      ::mmap(nullptr, memory.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorKind::kNoMemory, fmt::format("cannot get {} MiB for the weights: {}",
                                                   memory.mapped_ >> 20, std::strerror(errno))};
  }
  ::madvise(data, memory.mapped_, MADV_HUGEPAGE);
  memory.data_ = static_cast<uint8_t*>(data);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.bytes = bytes;
  std::strncpy(header.key, key.c_str(), sizeof(header.key) - 1);
  std::memcpy(memory.data_, &header, sizeof(header));
  fill(memory.data_ + kHeaderBytes);
  ::mprotect(data, memory.mapped_, PROT_READ);
  if (dir.empty()) return memory;

  std::error_code error;
  std::filesystem::create_directories(dir, error);
  remove_abandoned(dir, key);
  const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = fd >= 0;
  for (size_t at = 0; written && at < memory.mapped_;) {
    const ssize_t n = ::write(fd, memory.data_ + at, memory.mapped_ - at);
    written = n > 0;
    if (written) at += static_cast<size_t>(n);
  }
  written = written && ::fsync(fd) == 0;
  written = written && ::rename(temporary.c_str(), path.c_str()) == 0;
  const int code = errno;  // of the first call that failed
  if (fd >= 0) ::close(fd);
  if (!written) {
    ::unlink(temporary.c_str());
    log::warn("packed weights are not kept ('{}': {}); every start will pack them again", dir,
              std::strerror(code));
  }
  return memory;
}

PackMemory::PackMemory(PackMemory&& other) noexcept {
  *this = std::move(other);
}

PackMemory& PackMemory::operator=(PackMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  std::swap(offset_, other.offset_);
  std::swap(from_file_, other.from_file_);
  return *this;
}

PackMemory::~PackMemory() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

}  // namespace wok
