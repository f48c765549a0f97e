// A hub's model into the store.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/file_io.h"
#include "store/names.h"
#include "store/pull.h"
#include "store/pull_steps.h"
#include "store/sha256.h"

namespace wok::store {
namespace fs = std::filesystem;
namespace {

using Stage = PullProgress::Stage;

// A file on its way: bytes come into `part`, which becomes `checked` when they are the right ones,
// and a blob when all files of the model are.
struct Transit {
  const HubFile* file = nullptr;
  std::string name;     // in the model's folder
  std::string part;     // "" when the blob is there already
  std::string checked;  // "" until it is
  std::string sha256;   // of its bytes, known at the latest when they are checked
};

Status sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open", path, errno);
  const int code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (code != 0) return system_error("sync", path, code);
  return Ok{};
}

Status make_empty(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create", path, errno);
  ::close(fd);
  return Ok{};
}

bool valid_sha1_hex(const std::string& hex) {
  return hex.size() == 40 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

class HubPull {
 public:
  HubPull(const Store& store, const HubRef& ref, const PullOptions& options)
      : store_(store),
        name_(ref.name()),
        ref_(ref),
        options_(options),
        net_(net_options(options)) {}

  Result<PullOutcome> run() {
    report(options_, Stage::kAsking, 0, 0);
    WOK_TRY(model, ref_.hub->look_up(ref_, options_.hubs, net_));
    model_ = std::move(model);
    WOK_RETURN_IF_ERROR(name_files());
    if (auto there = same_is_there()) return PullOutcome{*there, true};
    for (const std::string& note : model_.notes) tell(note);
    WOK_RETURN_IF_ERROR(store_.prepare());
    WOK_TRY(lock, wait_for_lock(store_, options_));
    if (auto there = same_is_there()) return PullOutcome{*there, true};
    clean_leftovers(store_, options_.now_unix_s);
    WOK_RETURN_IF_ERROR(make_folders(store_.partial_folder()));
    find_what_is_there();
    WOK_RETURN_IF_ERROR(check_space());
    WOK_RETURN_IF_ERROR(download());
    WOK_RETURN_IF_ERROR(check());
    return put_in_place();
  }

 private:
  static DownloadOptions net_options(const PullOptions& options) {
    DownloadOptions net = options.download;
    net.cancelled = options.cancelled;
    return net;
  }

  void tell(const std::string& text) const {
    if (options_.on_note) options_.on_note(text);
  }

  Status name_files() {
    std::set<std::string> names;
    for (const HubFile& file : model_.files) {
      Transit transit;
      transit.file = &file;
      transit.name = file.path.substr(file.path.rfind('/') + 1);
      transit.sha256 = file.sha256;
      if (!valid_file_name(transit.name) || !names.insert(transit.name).second) {
        return invalid(fmt::format("{}: the hub lists a file whose name is none, or twice", name_));
      }
      if ((!file.sha256.empty() && !valid_sha256_hex(file.sha256)) ||
          (!file.git_sha1.empty() && !valid_sha1_hex(file.git_sha1))) {
        return invalid(fmt::format("{}: the hub's checksum of {} is none", name_, transit.name));
      }
      total_bytes_ += file.bytes;
      files_.push_back(std::move(transit));
    }
    WOK_CHECK(!files_.empty(), "a hub's model has files");
    return Ok{};
  }

  Manifest manifest() const {
    Manifest m{.name = name_,
               .sha256 = files_.front().sha256,
               .file_bytes = total_bytes_,
               .files = {},
               .source = model_.source,
               .license = model_.license,
               .pulled_at = utc_time(options_.now_unix_s)};
    const bool alone = files_.size() == 1 && files_.front().name.ends_with(".gguf");
    if (alone) return m;
    for (const Transit& file : files_)
      m.files.push_back({file.name, file.sha256, file.file->bytes});
    m.sha256 = digest_of(m.files);
    return m;
  }

  // The same bytes, as far as the hub gives sums; else of the same commit.
  std::optional<StoredModel> same_is_there() const {
    const Result<StoredModel> found = store_.find(name_);
    if (!found.ok()) return std::nullopt;
    const bool sums = std::all_of(files_.begin(), files_.end(),
                                  [](const Transit& file) { return !file.sha256.empty(); });
    const bool same = sums ? found->manifest.sha256 == manifest().sha256
                           : model_.pinned && found->manifest.source == model_.source;
    return same ? std::optional(*found) : std::nullopt;
  }

  std::string partial(const std::string& key) const { return store_.partial_folder() + "/" + key; }

  void find_what_is_there() {
    for (size_t i = 0; i < files_.size(); ++i) {
      Transit& file = files_[i];
      const HubFile& from = *file.file;
      if (!file.sha256.empty() && blob_is_good(store_, file.sha256, from.bytes)) continue;
      // Bytes may be gone on with only where a sum says that they belong together.
      const std::string sum = !from.sha256.empty() ? from.sha256 : from.git_sha1;
      file.part = partial(sum.empty() ? fmt::format("unsure-{}.part", i) : sum + ".part");
      if (sum.empty()) remove_part(file.part);
      std::error_code error;
      const std::string checked = partial(from.sha256 + ".checked");
      if (!from.sha256.empty() && fs::file_size(checked, error) == from.bytes && !error) {
        file.checked = checked;
      }
    }
  }

  Status check_space() const {
    WOK_TRY(free, free_bytes(store_.folder()));
    uint64_t need = 0;
    for (const Transit& file : files_) {
      if (file.part.empty() || !file.checked.empty()) continue;
      need += file.file->bytes - std::min(file.file->bytes, part_bytes(file.part));
    }
    if (free >= need) return Ok{};
    return io_error(
        fmt::format("not enough disk space in {}: {} needs {} more, {} are free. Free "
                    "some space there, or put the cache elsewhere with --cache-dir or "
                    "WOK_CACHE_DIR.",
                    store_.folder(), name_, human_bytes(need), human_bytes(free)));
  }

  Status download() {
    uint64_t before = 0;
    for (const Transit& file : files_) {
      const HubFile& from = *file.file;
      if (!file.part.empty() && file.checked.empty() && from.bytes > 0) {
        const Download download{
            .url = from.url, .headers = model_.headers, .bytes = from.bytes, .part = file.part};
        WOK_RETURN_IF_ERROR(net_.fetch(download, model_.explain, [&](uint64_t done) {
          report(options_, Stage::kDownloading, before + done, total_bytes_);
        }));
      } else if (!file.part.empty() && from.bytes == 0) {
        WOK_RETURN_IF_ERROR(make_empty(file.part));
      }
      before += from.bytes;
    }
    return Ok{};
  }

  Status check() {
    uint64_t before = 0;
    std::vector<std::string> unchecked;
    for (Transit& file : files_) {
      if (take_from_twin(file)) continue;
      if (!file.part.empty() && file.checked.empty()) {
        WOK_TRY(digest, sha256_of_file(file.part, [&](uint64_t done) {
                  report(options_, Stage::kChecking, before + done, total_bytes_);
                  return !pull_cancelled(options_);
                }));
        WOK_RETURN_IF_ERROR(compare(file, digest));
        if (file.file->sha256.empty() && file.file->git_sha1.empty())
          unchecked.push_back(file.name);
        file.sha256 = digest;
        WOK_RETURN_IF_ERROR(sync_file(file.part));
        file.checked = partial(digest + ".checked");
        if (::rename(file.part.c_str(), file.checked.c_str()) != 0) {
          return system_error("rename to", file.checked, errno);
        }
        remove_part(file.part);  // its record
      }
      before += file.file->bytes;
    }
    if (!unchecked.empty()) {
      tell(fmt::format("the hub gives no checksum of {}{}: only sizes were checked",
                       unchecked.front(), unchecked.size() > 1 ? " and others" : ""));
    }
    return Ok{};
  }

  // Two names of the same bytes are one part, which the first has moved on.
  bool take_from_twin(Transit& file) {
    for (const Transit& other : files_) {
      if (&other == &file) return false;
      if (file.part.empty() || other.part != file.part || other.checked.empty()) continue;
      file.checked = other.checked;
      file.sha256 = other.sha256;
      return true;
    }
    return false;
  }

  Status compare(const Transit& file, const std::string& sha256) const {
    std::string expected = file.file->sha256;
    std::string found = sha256;
    if (expected.empty() && !file.file->git_sha1.empty()) {
      expected = file.file->git_sha1;
      WOK_TRY(sha1, git_sha1_of_file(file.part));
      found = sha1;
    }
    if (expected.empty() || found == expected) return Ok{};
    remove_part(file.part);
    return invalid(
        fmt::format("{} of {} has the checksum {}, the hub says {}: the download is damaged "
                    "or the hub's copy is. That file was removed; try again.",
                    file.name, name_, found, expected));
  }

  Result<PullOutcome> put_in_place() {
    const Manifest manifest = this->manifest();
    WOK_TRY(work, TempFolder::create(store_.tmp_folder(), "pull-"));
    for (const Transit& file : files_) {
      if (file.checked.empty()) continue;
      const std::string blob = store_.blob_path(file.sha256);
      std::error_code error;
      if (!fs::exists(file.checked, error) && fs::exists(blob, error)) continue;  // the same twice
      if (::rename(file.checked.c_str(), blob.c_str()) != 0) {
        return system_error("rename to", blob, errno);
      }
    }
    const std::string blobs = store_.folder() + "/blobs";
    if (const int code = sync_folder(blobs); code != 0) return system_error("sync", blobs, code);
    if (!manifest.files.empty()) {
      WOK_RETURN_IF_ERROR(store_.link_folder(manifest, work.path()));
    }
    const std::optional<Manifest> old = store_.manifest_of(name_);
    WOK_RETURN_IF_ERROR(write_manifest(store_, manifest, work.path()));
    if (old) WOK_RETURN_IF_ERROR(store_.release(*old));
    std::error_code ignored;
    fs::remove(store_.partial_folder(), ignored);  // when it is empty
    WOK_TRY(stored, store_.find(name_));
    return PullOutcome{stored, false};
  }

  const Store& store_;
  std::string name_;
  const HubRef& ref_;
  const PullOptions& options_;
  Downloader net_;
  HubModel model_;
  std::vector<Transit> files_;
  uint64_t total_bytes_ = 0;
};

}  // namespace

Result<PullOutcome> pull(const Store& store, const HubRef& ref, const PullOptions& options) {
  Result<PullOutcome> outcome = HubPull(store, ref, options).run();
  if (outcome.ok() || outcome.error().kind != ErrorKind::kCancelled) return outcome;
  return Error{
      ErrorKind::kCancelled,
      "the pull was cancelled; what came so far is kept, and the next pull goes on with it"};
}

}  // namespace wok::store
