#include "store/store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/known_models.h"
#include "store/names.h"

namespace wok::store {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kManifestSuffix = ".json";

// Aliases mean a known model's name ("gemma3" is "gemma3:270m").
std::string canonical(std::string_view name) {
  const KnownModel* known = find_known_model(name);
  return known != nullptr ? known->name : std::string(name);
}

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
  return fmt::format("{}/models/{}{}", folder_, name, kManifestSuffix);
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
  model.path = blob_path(model.manifest.sha256);
  std::error_code error;
  const uint64_t bytes = fs::file_size(model.path, error);
  if (error) {
    model.problem = fmt::format("its file {} is gone", model.path);
  } else if (bytes != model.manifest.file_bytes) {
    model.problem = fmt::format("its file {} has {} bytes, expected {}", model.path, bytes,
                                model.manifest.file_bytes);
  }
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
    name.resize(name.size() - kManifestSuffix.size());
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
      "In the store ({}): {}. Can be pulled: {}. The path of a .gguf file works too.", folder_,
      here.empty() ? "nothing" : fmt::format("{}", fmt::join(here, ", ")), fmt::join(known, ", "));
}

Result<StoredModel> Store::find(std::string_view name) const {
  WOK_RETURN_IF_ERROR(check_name(name));
  const std::string full = canonical(name);
  const std::string file = manifest_path(full);
  const bool known = find_known_model(full) != nullptr;
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

Result<ResolvedModel> Store::resolve(std::string_view name_or_path) const {
  if (looks_like_path(name_or_path)) return resolve_path(std::string(name_or_path));
  WOK_TRY(model, find(name_or_path));
  return ResolvedModel{.id = model.manifest.name, .path = model.path};
}

Status Store::prepare() const {
  for (const char* name : {"/blobs", "/models", "/packs", "/tmp"}) {
    WOK_RETURN_IF_ERROR(make_folders(folder_ + name));
  }
  return Ok{};
}

Result<FileLock> Store::try_lock() const {
  return FileLock::try_lock(tmp_folder() + "/lock");
}

Result<StoredModel> Store::remove(std::string_view name) const {
  WOK_RETURN_IF_ERROR(check_name(name));
  const std::string full = canonical(name);
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

  WOK_TRY(others, list());
  const std::string& hex = model.manifest.sha256;
  const bool shared = std::any_of(others.begin(), others.end(), [&](const StoredModel& other) {
    return other.manifest.sha256 == hex;
  });
  if (shared) return model;
  if (::unlink(model.path.c_str()) != 0 && errno != ENOENT) {
    return system_error("remove", model.path, errno);
  }
  for (fs::directory_iterator it(packs_folder(), error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with(hex)) fs::remove_all(it->path(), ignored);
  }
  return model;
}

}  // namespace wok::store
