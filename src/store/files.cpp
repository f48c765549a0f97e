#include "store/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file_io.h"

namespace wok::store {
namespace fs = std::filesystem;

Error system_error(std::string_view doing, const std::string& path, int error_number) {
  std::string way_out;
  if (error_number == ENOSPC || error_number == EDQUOT) {
    way_out =
        ". Free some space there, or put the cache elsewhere with --cache-dir or "
        "WOK_CACHE_DIR.";
  } else if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    way_out = ". Make it writable, or put the cache elsewhere with --cache-dir or WOK_CACHE_DIR.";
  }
  return io_error(fmt::format("cannot {} {}: {}{}", doing, path,
                              std::generic_category().message(error_number), way_out));
}

Result<NewFile> NewFile::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create", path, errno);
  return NewFile(fd, path);
}

NewFile::NewFile(NewFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status NewFile::write(std::string_view bytes) {
  const int code = write_fully(fd_, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (code != 0) return system_error("write", path_, code);
  return Ok{};
}

Status NewFile::commit(const std::string& target) {
  if (::fsync(fd_) != 0) return system_error("sync", path_, errno);
  if (::close(std::exchange(fd_, -1)) != 0) return system_error("close", path_, errno);
  if (::rename(path_.c_str(), target.c_str()) != 0) return system_error("rename to", target, errno);
  const std::string folder = fs::path(target).parent_path().string();
  if (const int code = sync_folder(folder); code != 0) return system_error("sync", folder, code);
  return Ok{};
}

Status make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return system_error("create the folder", path, error.value());
  if (!fs::is_directory(path, error)) return system_error("use as a folder", path, ENOTDIR);
  return Ok{};
}

Result<TempFolder> TempFolder::create(const std::string& parent, const std::string& prefix) {
  std::string path = parent + "/" + prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return system_error("create a folder in", parent, errno);
  return TempFolder(path);
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<FileLock> FileLock::try_lock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("open the lock file", path, errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return FileLock(fd);
  const int error_number = errno;
  ::close(fd);
  if (error_number == EWOULDBLOCK) return FileLock(-1);
  return system_error("lock", path, error_number);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t folder_bytes(const std::string& path) {
  uint64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;  // files come and go while pip works
    if (!it->is_regular_file(gone)) continue;
    const uint64_t size = it->file_size(gone);
    if (!gone) total += size;
  }
  return total;
}

Result<uint64_t> free_bytes(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    return system_error("read the free space of", path, errno);
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace wok::store
