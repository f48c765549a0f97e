#include "store/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "store/files.h"

namespace wok::store {
namespace {

Result<int> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("open", path, errno);
  return fd;
}

int write_at(int fd, const void* data, size_t size, uint64_t at) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(fd, bytes, size, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes += written;
    size -= static_cast<size_t>(written);
    at += static_cast<uint64_t>(written);
  }
  return 0;
}

uint64_t file_size(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace

Result<PartFile> PartFile::open(const std::string& path, uint64_t bytes, uint64_t segment_bytes) {
  WOK_CHECK(bytes > 0 && segment_bytes > 0, "a part has bytes");
  PartFile part;
  part.path_ = path;
  part.bytes_ = bytes;
  part.segment_bytes_ = segment_bytes;
  part.segments_ = static_cast<size_t>((bytes + segment_bytes - 1) / segment_bytes);
  part.done_ = std::make_unique<std::atomic<uint64_t>[]>(part.segments_);
  WOK_TRY(data, open_file(path));
  part.data_ = data;
  WOK_TRY(record, open_file(path + ".done"));
  part.record_ = record;
  WOK_RETURN_IF_ERROR(part.load());
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, -1)),
      record_(std::exchange(other.record_, -1)),
      bytes_(other.bytes_),
      segment_bytes_(other.segment_bytes_),
      segments_(other.segments_),
      done_(std::move(other.done_)) {}

PartFile::~PartFile() {
  if (data_ >= 0) ::close(data_);
  if (record_ >= 0) ::close(record_);
}

// A file that is shorter than its segments say was cut by somebody; one of another length belongs
// to another division into segments.
Status PartFile::load() {
  std::vector<uint64_t> counts(segments_);
  const size_t record_bytes = segments_ * sizeof(uint64_t);
  bool good =
      file_size(record_) == record_bytes && file_size(data_) == bytes_ &&
      ::pread(record_, counts.data(), record_bytes, 0) == static_cast<ssize_t>(record_bytes);
  for (size_t i = 0; good && i < segments_; ++i) good = counts[i] <= size(i);
  if (!good) {
    std::fill(counts.begin(), counts.end(), 0);
    for (const int fd : {record_, data_}) {
      const uint64_t length = fd == data_ ? bytes_ : record_bytes;
      if (::ftruncate(fd, 0) != 0 || ::ftruncate(fd, static_cast<off_t>(length)) != 0) {
        return system_error("make room in", path_, errno);
      }
    }
  }
  for (size_t i = 0; i < segments_; ++i) done_[i] = counts[i];
  return Ok{};
}

uint64_t PartFile::size(size_t segment) const {
  return std::min(segment_bytes_, bytes_ - begin(segment));
}

uint64_t PartFile::done() const {
  uint64_t total = 0;
  for (size_t i = 0; i < segments_; ++i) total += done(i);
  return total;
}

// The bytes first, so that a killed process never has a record of what is not there.
Status PartFile::append(size_t segment, std::span<const uint8_t> bytes) {
  WOK_CHECK(done(segment) + bytes.size() <= size(segment), "a segment is not outgrown");
  if (const int code = write_at(data_, bytes.data(), bytes.size(), begin(segment) + done(segment));
      code != 0) {
    return system_error("write", path_, code);
  }
  return set_done(segment, done(segment) + bytes.size());
}

Status PartFile::restart(size_t segment) {
  return set_done(segment, 0);
}

Status PartFile::set_done(size_t segment, uint64_t bytes) {
  done_[segment].store(bytes, std::memory_order_relaxed);
  if (const int code = write_at(record_, &bytes, sizeof(bytes), segment * sizeof(bytes));
      code != 0) {
    return system_error("write", path_ + ".done", code);
  }
  return Ok{};
}

}  // namespace wok::store
