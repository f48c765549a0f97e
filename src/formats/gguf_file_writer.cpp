#include "formats/gguf_file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/file_io.h"

namespace wok {
namespace {

constexpr uint32_t kMagic = 0x46554747, kVersion = 3;
constexpr uint32_t kUint32 = 4, kString = 8, kArray = 9;  // value types
constexpr uint64_t kAlignment = 32;  // what readers take without a key that says so

template <class T>
void put(std::vector<uint8_t>& to, T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(value));
}

void put_text(std::vector<uint8_t>& to, std::string_view text) {
  put(to, static_cast<uint64_t>(text.size()));
  to.insert(to.end(), text.begin(), text.end());
}

}  // namespace

GgufFileWriter::~GgufFileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

Error GgufFileWriter::failed(const char* what, int code) const {
  const char* hint =
      code == ENOSPC || code == EDQUOT ? "; free some space, or write elsewhere" : "";
  return io_error(fmt::format("cannot {} '{}': {}{}", what, path_, std::strerror(code), hint));
}

void GgufFileWriter::key(std::string_view name, uint32_t type, std::span<const uint8_t> value) {
  put_text(keys_, name);
  put(keys_, type);
  keys_.insert(keys_.end(), value.begin(), value.end());
  ++key_count_;
}

void GgufFileWriter::key_u32(std::string_view name, uint32_t value) {
  key(name, kUint32, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

void GgufFileWriter::key_string(std::string_view name, std::string_view value) {
  std::vector<uint8_t> bytes;
  put_text(bytes, value);
  key(name, kString, bytes);
}

void GgufFileWriter::key_strings(std::string_view name, std::span<const std::string> values) {
  std::vector<uint8_t> bytes;
  put(bytes, kString);
  put(bytes, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) put_text(bytes, value);
  key(name, kArray, bytes);
}

void GgufFileWriter::tensor(std::string_view name, uint32_t type, std::span<const int64_t> shape,
                            uint64_t bytes) {
  put_text(infos_, name);
  put(infos_, static_cast<uint32_t>(shape.size()));
  for (const int64_t size : shape) put(infos_, size);
  put(infos_, type);
  put(infos_, offset_);
  offset_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  ++tensor_count_;
}

Status GgufFileWriter::begin() {
  const std::filesystem::path path(path_);
  part_ = (path.parent_path() / fmt::format(".{}.{}.part", path.filename().string(), ::getpid()))
              .string();
  fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    const int code = errno;
    part_.clear();
    return failed("create", code);
  }
  std::vector<uint8_t> head;
  put(head, kMagic);
  put(head, kVersion);
  put(head, tensor_count_);
  put(head, key_count_);
  head.insert(head.end(), keys_.begin(), keys_.end());
  head.insert(head.end(), infos_.begin(), infos_.end());
  WOK_RETURN_IF_ERROR(write(head));
  return end_tensor();
}

Status GgufFileWriter::write(std::span<const uint8_t> data) {
  WOK_CHECK(fd_ >= 0, "a file that was begun");
  if (const int code = write_fully(fd_, data); code != 0) return failed("write", code);
  written_ += data.size();
  return Ok{};
}

Status GgufFileWriter::end_tensor() {
  static constexpr uint8_t kZeros[kAlignment] = {};
  return write({kZeros, (kAlignment - written_ % kAlignment) % kAlignment});
}

Status GgufFileWriter::finish() {
  if (::fsync(fd_) != 0) return failed("write", errno);
  if (::rename(part_.c_str(), path_.c_str()) != 0) return failed("create", errno);
  part_.clear();
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int code = sync_folder(folder.empty() ? "." : folder);
  return code == 0 ? Status(Ok{}) : failed("write", code);
}

}  // namespace wok
