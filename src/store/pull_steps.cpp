#include "store/pull_steps.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "store/sha256.h"

namespace wok::store {
namespace fs = std::filesystem;
namespace {

constexpr auto kLockPoll = std::chrono::milliseconds(200);
constexpr int64_t kPartialLifeS = 7 * 24 * 3600;

std::vector<fs::path> entries_of(const std::string& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

}  // namespace

bool pull_cancelled(const PullOptions& options) {
  return options.cancelled != nullptr && options.cancelled->load();
}

Error pull_cancelled_error() {
  return {ErrorKind::kCancelled, "the pull was cancelled"};
}

void report(const PullOptions& options, PullProgress::Stage stage, uint64_t done, uint64_t total) {
  if (options.on_progress) options.on_progress({stage, done, total});
}

Result<FileLock> wait_for_lock(const Store& store, const PullOptions& options) {
  for (;;) {
    WOK_TRY(lock, store.try_lock());
    if (lock.held()) return lock;
    if (pull_cancelled(options)) return pull_cancelled_error();
    report(options, PullProgress::Stage::kWaiting, 0, 0);
    std::this_thread::sleep_for(kLockPoll);
  }
}

void clean_leftovers(const Store& store, int64_t now_unix_s) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(store.tmp_folder())) {
    if (path.filename() != "lock" && path != store.partial_folder()) fs::remove_all(path, ignored);
  }
  for (const fs::path& path : entries_of(store.partial_folder())) {
    struct stat info {};
    const bool old =
        ::stat(path.c_str(), &info) == 0 && now_unix_s - info.st_mtim.tv_sec > kPartialLifeS;
    if (old) fs::remove_all(path, ignored);
  }
  fs::remove(store.partial_folder(), ignored);  // when it is empty
}

bool blob_is_good(const Store& store, std::string_view sha256_hex, uint64_t bytes) {
  const std::string path = store.blob_path(sha256_hex);
  std::error_code error;
  if (fs::file_size(path, error) != bytes || error) return false;
  const Result<std::string> digest = sha256_of_file(path);
  return digest.ok() && *digest == sha256_hex;
}

std::string utc_time(int64_t unix_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{unix_s}));
}

Status write_manifest(const Store& store, const Manifest& manifest, const std::string& work) {
  WOK_TRY(file, NewFile::create(work + "/manifest.json"));
  WOK_RETURN_IF_ERROR(file.write(to_json(manifest)));
  return file.commit(store.manifest_path(manifest.name));
}

}  // namespace wok::store
