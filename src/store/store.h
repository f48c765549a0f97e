// The model store: content-addressed files below one cache folder.
//
//   blobs/sha256-<hex>    model files, never changed once there
//   folders/sha256-<hex>/ a model of several files: symbolic links to their blobs, by their names
//                         (<hex> is digest_of the list)
//   models/<name>.json    which blob or files a name means (manifest.h); '/' is "%2F" there
//   packs/                weights re-laid for a CPU, written by the loader; files whose name begins
//                         with a blob's or folder's <hex> go when that goes
//   tmp/                  work in progress, tmp/lock; emptied by the next pull, but for
//   tmp/partial/          what downloads from hubs have got so far (download.h)
//
// A model exists when its manifest does, and the manifest is renamed into place after its files are
// complete and synced: a process that dies at any moment leaves nothing that looks like a model.
// Processes meet only in tmp/lock (pull, remove). Reading needs no lock. A Store holds no state
// but its folder and may be used from many threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/files.h"
#include "store/manifest.h"

namespace wok::store {

// WOK_CACHE_DIR, else $XDG_CACHE_HOME/wok, else $HOME/.cache/wok; the arguments are the values of
// these variables, "" when unset. Errors: kInvalid when none is there or a path is relative.
Result<std::string> default_cache_dir(std::string_view wok_cache_dir,
                                      std::string_view xdg_cache_home, std::string_view home);

struct StoredModel {
  Manifest manifest;
  std::string path;     // of the blob, of the first of several GGUF files, or of the folder
  std::string problem;  // "" when it can be loaded, else why not
};

// What a user's "smollm2" or "./x.gguf" means.
struct ResolvedModel {
  std::string id;  // the name clients use: the model's name, or the file's without ".gguf"
  std::string path;
};

class Store {
 public:
  explicit Store(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string blob_path(std::string_view sha256_hex) const;
  std::string manifest_path(std::string_view name) const;
  std::string packs_folder() const { return folder_ + "/packs"; }
  std::string tmp_folder() const { return folder_ + "/tmp"; }
  std::string partial_folder() const { return folder_ + "/tmp/partial"; }
  std::string model_folder(std::string_view sha256_hex) const;

  // All manifests by name. A folder that does not exist yet is an empty store; a damaged manifest
  // is listed with its problem.
  Result<std::vector<StoredModel>> list() const;

  // A pulled model by name or alias. Errors: kInvalid for a malformed name; kNotFound says what is
  // there and how to pull; kIo when the file behind the name is gone or cut.
  Result<StoredModel> find(std::string_view name) const;

  // As it stands there, whatever became of its files; none when it is not there or damaged.
  std::optional<Manifest> manifest_of(std::string_view valid_name) const;

  // A name as in find(), or the path of a file (contains '/' or ends in ".gguf").
  Result<ResolvedModel> resolve(std::string_view name_or_path) const;

  // Forgets the name, and removes its files and packs unless another name means the same ones.
  // A process that has the file mapped keeps it. Errors: kNotFound; kBusy while a pull runs.
  Result<StoredModel> remove(std::string_view name) const;

  // Under the lock: removes what only this manifest, which has just gone, had a use for.
  Status release(const Manifest& manifest) const;

  // Makes the manifest's folder of links, whose blobs are there, by way of `work`, a folder on the
  // same file system. One that is there and right stays.
  Status link_folder(const Manifest& manifest, const std::string& work) const;

  // Creates the folders. Errors: kIo with the folder and the way out.
  Status prepare() const;

  // Held by pull and remove. Ok with held() == false: another process has it.
  Result<FileLock> try_lock() const;

 private:
  StoredModel inspect(const std::string& file, std::string_view name) const;
  std::string what_is_there() const;

  std::string folder_;
};

}  // namespace wok::store
