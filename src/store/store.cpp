#include "store/store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file_io.h"
#include "store/hubs/hub.h"
#include "store/known_models.h"
#include "store/names.h"

namespace wok::store {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kManifestSuffix = ".json";

std::string models_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".gguf") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.size() > 10) names.resize(10);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<ResolvedModel> resolve_path(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) {
    return ResolvedModel{.id = fs::path(path).stem().string(), .path = path};
  }
  if (fs::is_directory(status)) {
    if (fs::is_regular_file(fs::path(path) / "config.json", error)) {  // Hugging Face's
      const fs::path folder =
          fs::path(path).filename().empty() ? fs::path(path).parent_path() : fs::path(path);
      return ResolvedModel{.id = folder.filename().string(), .path = folder.string()};
    }
    const std::string there = models_in(path);
    return not_found(
        fmt::format("{} is a folder without config.json, expected a .gguf file or a Hugging Face "
                    "folder{}{}",
                    path, there.empty() ? "" : ". In it: ", there));
  }
  if (status.type() == fs::file_type::not_found) {
    fs::path folder = fs::path(path).parent_path();
    if (folder.empty()) folder = ".";
    const std::string there = models_in(folder);
    return not_found(fmt::format(
        "no such file: {}{}", path,
        there.empty() ? ". Give the path of a .gguf file, or a model's name (see wok list)."
                      : fmt::format(". In that folder: {}", there)));
  }
  if (error) return system_error("read", path, error.value());
  return not_found(fmt::format("{} is not a regular file", path));
}

}  // namespace

Result<std::string> default_cache_dir(std::string_view wok_cache_dir,
                                      std::string_view xdg_cache_home, std::string_view home) {
  const auto absolute = [](std::string path, const char* variable) -> Result<std::string> {
    if (!path.starts_with('/')) {
      return invalid(fmt::format("{} is '{}', expected an absolute path", variable, path));
    }
    return path;
  };
  if (!wok_cache_dir.empty()) return absolute(std::string(wok_cache_dir), "WOK_CACHE_DIR");
  // The XDG specification says to ignore a relative path there.
  if (xdg_cache_home.starts_with('/')) return std::string(xdg_cache_home) + "/wok";
  if (!home.empty()) return absolute(std::string(home) + "/.cache/wok", "HOME");
  return invalid("no folder for models: HOME is not set. Set WOK_CACHE_DIR or use --cache-dir.");
}

std::string Store::blob_path(std::string_view sha256_hex) const {
  WOK_CHECK(valid_sha256_hex(sha256_hex), "a digest is checked before it becomes a path");
  return fmt::format("{}/blobs/sha256-{}", folder_, sha256_hex);
}

std::string Store::manifest_path(std::string_view name) const {
  WOK_CHECK(valid_name(name), "a name is checked before it becomes a path");
  return fmt::format("{}/models/{}{}", folder_, file_name_of(name), kManifestSuffix);
}

std::string Store::model_folder(std::string_view sha256_hex) const {
  WOK_CHECK(valid_sha256_hex(sha256_hex), "a digest is checked before it becomes a path");
  return fmt::format("{}/folders/sha256-{}", folder_, sha256_hex);
}

StoredModel Store::inspect(const std::string& file, std::string_view name) const {
  StoredModel model;
  model.manifest.name = name;
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) {
    model.problem = fmt::format("cannot read {}", file);
    return model;
  }
  Result<Manifest> manifest = parse_manifest(text.str(), file);
  if (!manifest.ok()) {
    model.problem = manifest.error().message;
    return model;
  }
  if (manifest->name != name) {
    model.problem = fmt::format("{} is the manifest of '{}'", file, manifest->name);
    return model;
  }
  model.manifest = *manifest;
  const auto check = [&](const std::string& path, uint64_t expected) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error) {
      model.problem = fmt::format("its file {} is gone", path);
    } else if (bytes != expected) {
      model.problem = fmt::format("its file {} has {} bytes, expected {}", path, bytes, expected);
    }
  };
  const std::vector<ManifestFile>& files = model.manifest.files;
  if (files.empty()) {
    model.path = blob_path(model.manifest.sha256);
    check(model.path, model.manifest.file_bytes);
    return model;
  }
  const std::string folder = model_folder(model.manifest.sha256);
  for (const ManifestFile& part : files) check(folder + "/" + part.name, part.bytes);
  model.path = files.front().name.ends_with(".gguf") ? folder + "/" + files.front().name : folder;
  return model;
}

Result<std::vector<StoredModel>> Store::list() const {
  std::vector<StoredModel> models;
  const std::string folder = folder_ + "/models";
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error.value() == ENOENT) return models;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.ends_with(kManifestSuffix)) continue;
    name = name_of_file(name.substr(0, name.size() - kManifestSuffix.size()));
    if (valid_name(name)) models.push_back(inspect(it->path().string(), name));
  }
  if (error) return system_error("read", folder, error.value());
  std::sort(models.begin(), models.end(), [](const StoredModel& a, const StoredModel& b) {
    return a.manifest.name < b.manifest.name;
  });
  return models;
}

std::string Store::what_is_there() const {
  std::vector<std::string> here;
  if (const auto models = list(); models.ok()) {
    for (const StoredModel& model : *models) here.push_back(model.manifest.name);
  }
  std::vector<std::string> known;
  for (const KnownModel& model : known_models()) known.push_back(model.name);
  return fmt::format(
      "In the store ({}): {}. Can be pulled: {}, or a hub's model (wok pull --help). The path of a "
      ".gguf file works too.",
      folder_, here.empty() ? "nothing" : fmt::format("{}", fmt::join(here, ", ")),
      fmt::join(known, ", "));
}

Result<StoredModel> Store::find(std::string_view name) const {
  WOK_TRY(full, canonical_name(name));
  const std::string file = manifest_path(full);
  const bool known = find_known_model(full) != nullptr || parse_hub_ref(full).ok();
  std::error_code error;
  if (!fs::exists(file, error)) {
    if (error) return system_error("read", file, error.value());
    if (known) {
      return not_found(fmt::format("model '{0}' is not here yet. Get it with: wok pull {0}", full));
    }
    return not_found(fmt::format("no model named '{}'. {}", name, what_is_there()));
  }
  StoredModel model = inspect(file, full);
  if (!model.problem.empty()) {
    return io_error(fmt::format("model '{0}' is damaged: {1}. {2}: wok {3} {0}", full,
                                model.problem, known ? "Get it again with" : "Remove it with",
                                known ? "pull" : "rm"));
  }
  return model;
}

std::optional<Manifest> Store::manifest_of(std::string_view valid_name) const {
  const StoredModel model = inspect(manifest_path(valid_name), valid_name);
  return model.path.empty() ? std::nullopt : std::optional(model.manifest);
}

Result<ResolvedModel> Store::resolve(std::string_view name_or_path) const {
  if (looks_like_path(name_or_path)) return resolve_path(std::string(name_or_path));
  WOK_TRY(model, find(name_or_path));
  return ResolvedModel{.id = model.manifest.name, .path = model.path};
}

Status Store::prepare() const {
  for (const char* name : {"/blobs", "/folders", "/models", "/packs", "/tmp"}) {
    WOK_RETURN_IF_ERROR(make_folders(folder_ + name));
  }
  return Ok{};
}

Result<FileLock> Store::try_lock() const {
  return FileLock::try_lock(tmp_folder() + "/lock");
}

Result<StoredModel> Store::remove(std::string_view name) const {
  WOK_TRY(full, canonical_name(name));
  const std::string file = manifest_path(full);
  std::error_code error;
  if (!fs::exists(file, error)) {
    return not_found(fmt::format("no model named '{}' to remove. {}", name, what_is_there()));
  }
  WOK_RETURN_IF_ERROR(prepare());
  WOK_TRY(lock, try_lock());
  if (!lock.held()) {
    return Error{ErrorKind::kBusy, "a pull is running on this store; try again when it has ended"};
  }
  StoredModel model = inspect(file, full);
  if (::unlink(file.c_str()) != 0) return system_error("remove", file, errno);
  if (model.path.empty()) return model;  // a damaged manifest names no blob
  WOK_RETURN_IF_ERROR(release(model.manifest));
  return model;
}

Status Store::release(const Manifest& manifest) const {
  std::set<std::string> used;
  WOK_TRY(others, list());
  for (const StoredModel& other : others) {
    used.insert(other.manifest.sha256);
    for (const ManifestFile& file : other.manifest.files) used.insert(file.sha256);
  }
  std::error_code error;
  if (used.count(manifest.sha256) == 0) {
    if (!manifest.files.empty()) fs::remove_all(model_folder(manifest.sha256), error);
    for (fs::directory_iterator it(packs_folder(), error), end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      if (it->path().filename().string().starts_with(manifest.sha256)) {
        fs::remove_all(it->path(), ignored);
      }
    }
  }
  std::vector<std::string> blobs;
  for (const ManifestFile& file : manifest.files) blobs.push_back(file.sha256);
  if (blobs.empty()) blobs.push_back(manifest.sha256);
  for (const std::string& hex : blobs) {
    const std::string path = blob_path(hex);
    if (used.count(hex) == 0 && ::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return system_error("remove", path, errno);
    }
  }
  return Ok{};
}

Status Store::link_folder(const Manifest& manifest, const std::string& work) const {
  const std::string target = model_folder(manifest.sha256);
  std::error_code error;
  const bool right =
      std::all_of(manifest.files.begin(), manifest.files.end(), [&](const ManifestFile& file) {
        std::error_code gone;
        return fs::file_size(target + "/" + file.name, gone) == file.bytes && !gone;
      });
  if (right) return Ok{};
  fs::remove_all(target, error);  // of a model that was damaged
  const std::string made = work + "/folder";
  WOK_RETURN_IF_ERROR(make_folders(made));
  for (const ManifestFile& file : manifest.files) {
    const std::string link = made + "/" + file.name;
    const std::string blob = "../../blobs/sha256-" + file.sha256;  // a moved store stays whole
    if (::symlink(blob.c_str(), link.c_str()) != 0) return system_error("create", link, errno);
  }
  if (const int code = sync_folder(made); code != 0) return system_error("sync", made, code);
  if (::rename(made.c_str(), target.c_str()) != 0) {
    return system_error("rename to", target, errno);
  }
  const std::string parent = folder_ + "/folders";
  if (const int code = sync_folder(parent); code != 0) return system_error("sync", parent, code);
  return Ok{};
}

}  // namespace wok::store
