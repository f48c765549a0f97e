#include "quantizer/part_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/file_io.h"
#include "formats/safetensors_writer.h"

namespace wok {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlan = "plan.json";
constexpr const char* kLock = "lock";

Error failed(const std::string& path, const std::string& why) {
  return io_error(fmt::format("cannot write '{}': {}", path, why));
}

}  // namespace

Result<PartFolder> PartFolder::open(const std::string& out, const std::string& plan) {
  std::error_code error;
  if (fs::exists(out, error)) {
    return invalid(fmt::format("'{}' is there already; name another folder, or remove it", out));
  }
  const std::string part = out + ".part", plan_path = part + "/" + kPlan;
  fs::create_directories(part, error);
  if (error) return failed(part, error.message());
  const int lock = ::open((part + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) return failed(part, std::strerror(errno));
  PartFolder folder(out, lock);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorKind::kBusy, fmt::format("another process is writing '{}'", out)};
  }
  std::ifstream stream(plan_path);
  const std::string before{std::istreambuf_iterator<char>(stream), {}};
  if (before == plan) return folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(part, error)) {
    if (entry.path().filename() != kLock) fs::remove_all(entry.path(), error);
  }
  WOK_RETURN_IF_ERROR(write_text_file(plan_path, plan));
  return folder;
}

PartFolder::PartFolder(PartFolder&& other) noexcept
    : out_(std::move(other.out_)), part_(std::move(other.part_)), lock_(other.lock_) {
  other.lock_ = -1;
}

PartFolder::~PartFolder() {
  if (lock_ >= 0) ::close(lock_);
}

bool PartFolder::has(const std::string& name) const {
  std::error_code error;
  return fs::exists(path(name), error);
}

Status PartFolder::finish() {
  for (const char* name : {kPlan, kLock}) ::unlink(path(name).c_str());
  if (::rename(part_.c_str(), out_.c_str()) != 0) return failed(out_, std::strerror(errno));
  const std::string parent = fs::path(out_).parent_path().string();
  const int code = sync_folder(parent.empty() ? "." : parent);
  return code == 0 ? Status(Ok{}) : failed(out_, std::strerror(code));
}

}  // namespace wok
