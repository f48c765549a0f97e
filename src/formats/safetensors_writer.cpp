#include "formats/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file_io.h"

namespace wok {
namespace {

constexpr size_t kAlignment = 8;  // of the data, as the format's own library has it

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A file under another name until finish().
class PartFile {
 public:
  explicit PartFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    code_ = fd_ < 0 ? errno : 0;
  }
  ~PartFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!finished_) ::unlink(part_.c_str());
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void write(std::span<const uint8_t> bytes) {
    if (code_ == 0) code_ = write_fully(fd_, bytes);
  }

  Status finish() {
    if (code_ == 0 && ::fsync(fd_) != 0) code_ = errno;
    if (code_ == 0 && ::rename(part_.c_str(), path_.c_str()) != 0) code_ = errno;
    finished_ = code_ == 0;
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    if (code_ == 0) code_ = sync_folder(folder.empty() ? "." : folder);
    if (code_ == 0) return Ok{};
    const char* hint =
        code_ == ENOSPC || code_ == EDQUOT ? "; free some space, or write elsewhere" : "";
    return io_error(fmt::format("cannot write '{}': {}{}", path_, std::strerror(code_), hint));
  }

 private:
  std::string path_, part_;
  int fd_ = -1, code_ = 0;
  bool finished_ = false;
};

}  // namespace

Status write_safetensors(const std::string& path, const std::vector<SafetensorsEntry>& entries) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    header[e.name] = {
        {"dtype", e.type}, {"shape", e.shape}, {"data_offsets", {at, at + e.data.size()}}};
    at += e.data.size();
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const uint64_t length = text.size();
  PartFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(&length), sizeof(length)});
  file.write(bytes_of(text));
  for (const SafetensorsEntry& e : entries) file.write(e.data);
  return file.finish();
}

Status write_text_file(const std::string& path, const std::string& text) {
  PartFile file(path);
  file.write(bytes_of(text));
  return file.finish();
}

}  // namespace wok
