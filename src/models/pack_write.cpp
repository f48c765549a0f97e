#include "models/pack_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file_io.h"

namespace wok {
namespace {

constexpr const char* kPartSuffix = ".part";
constexpr const char* kElsewhere = "keep the cache elsewhere with --cache-dir or WOK_CACHE_DIR";

std::string way_out(int code, size_t bytes) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return fmt::format("free {} MiB there, or {}", (bytes >> 20) + 1, kElsewhere);
    case EROFS:
    case EACCES:
    case EPERM:
      return fmt::format("make the folder writable for this user, or {}", kElsewhere);
    case ENOTDIR:
    case EEXIST:
    case EISDIR:
      return fmt::format("remove what is in the way, or {}", kElsewhere);
    case EFBIG:
      return fmt::format("raise the limit on file sizes (ulimit -f) to {} MiB", (bytes >> 20) + 1);
    default:
      return kElsewhere;
  }
}

Error cannot_write(const std::string& path, int code, size_t bytes) {
  return io_error(
      fmt::format("cannot write '{}': {} ({})", path, std::strerror(code), way_out(code, bytes)));
}

// A descriptor; unlinks its file, where it still has a name to unlink.
class PartFile {
 public:
  PartFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  PartFile(PartFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::exchange(other.path_, "")) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  void renamed() { path_.clear(); }

 private:
  int fd_;
  std::string path_;
};

// A new file that this process alone holds. Two threads, or processes of different containers with
// one process id, get two files.
Result<PartFile> create_part(const std::string& path, size_t bytes) {
  for (int n = 0;; ++n) {
    const std::string name = fmt::format("{}.{}-{}{}", path, ::getpid(), n, kPartSuffix);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST && n < 1000) continue;
    if (fd < 0) return cannot_write(name, errno, bytes);
    PartFile part(fd, name);
    // Between open and flock another start may have taken the file for an abandoned one.
    struct stat info {};
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (::fstat(fd, &info) == 0 && info.st_nlink > 0) return part;
    part.renamed();
  }
}

// The kernel gives a lock back when its process dies, whatever the process ids say: a part file
// that can be locked has no writer any more.
void remove_abandoned(const std::string& dir) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    if (!path.ends_with(kPartSuffix)) continue;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    ::close(fd);
  }
}

// The error number, 0 when all is written.
int write_all(int fd, std::span<const uint8_t> bytes) {
  // A full disk says so before it is filled further. Not all file systems can reserve.
  if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes.size())) != 0 && errno != EOPNOTSUPP &&
      errno != ENOSYS && errno != EINTR) {
    return errno;
  }
  return write_fully(fd, bytes);
}

}  // namespace

Status write_pack(const std::string& dir, const std::string& name, std::span<const uint8_t> bytes) {
  const std::string path = dir + "/" + name;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return cannot_write(dir, error.value(), bytes.size());
  remove_abandoned(dir);
  WOK_TRY(part, create_part(path, bytes.size()));
  if (const int code = write_all(part.fd(), bytes); code != 0) {
    return cannot_write(part.path(), code, bytes.size());
  }
  if (::fsync(part.fd()) != 0) return cannot_write(part.path(), errno, bytes.size());
  if (::rename(part.path().c_str(), path.c_str()) != 0) {
    return cannot_write(path, errno, bytes.size());
  }
  part.renamed();
  sync_folder(dir);
  return Ok{};
}

}  // namespace wok
