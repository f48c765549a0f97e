#include "store/manifest.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/names.h"
#include "store/sha256.h"

namespace wok::store {
namespace {

constexpr int kOneFile = 1;
constexpr int kFolder = 2;  // with "files"

Result<std::vector<ManifestFile>> parse_files(const nlohmann::json& json, const std::string& path) {
  const auto list = json.find("files");
  if (list == json.end() || !list->is_array() || list->empty()) {
    return invalid(fmt::format("{}: \"files\" is not a list of files", path));
  }
  std::vector<ManifestFile> files;
  std::set<std::string> names;
  for (const auto& entry : *list) {
    const auto text = [&](const char* key) {
      const bool there = entry.is_object() && entry.contains(key) && entry[key].is_string();
      return there ? entry[key].get<std::string>() : "";
    };
    ManifestFile file;
    file.name = text("name");
    file.sha256 = text("sha256");
    if (!valid_file_name(file.name) || !names.insert(file.name).second) {
      return invalid(
          fmt::format("{}: \"files\" has a \"name\" that is no file name, or twice", path));
    }
    if (!valid_sha256_hex(file.sha256)) {
      return invalid(fmt::format("{}: \"sha256\" of {} is not 64 hex digits", path, file.name));
    }
    if (!entry.contains("bytes") || !entry["bytes"].is_number_unsigned()) {
      return invalid(fmt::format("{}: \"bytes\" of {} is not a whole number", path, file.name));
    }
    file.bytes = entry["bytes"].get<uint64_t>();
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::string digest_of(const std::vector<ManifestFile>& files) {
  Sha256 hash;
  for (const ManifestFile& file : files) {
    const std::string line = fmt::format("{}  {}\n", file.sha256, file.name);
    hash.update({reinterpret_cast<const uint8_t*>(line.data()), line.size()});
  }
  return hash.finish_hex();
}

std::string to_json(const Manifest& m) {
  // A model of one file is written as ever, for older versions that share the store.
  nlohmann::ordered_json json = {{"format", m.files.empty() ? kOneFile : kFolder},
                                 {"name", m.name},
                                 {"sha256", m.sha256},
                                 {"bytes", m.file_bytes},
                                 {"source", m.source},
                                 {"license", m.license},
                                 {"pulled_at", m.pulled_at}};
  for (const ManifestFile& file : m.files) {
    json["files"].push_back({{"name", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  }
  // Licences and file names are a hub's text, maybe not UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& path) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid(fmt::format("{} is not a JSON object", path));
  const auto text_of = [&](const char* key) -> std::string {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  const nlohmann::json format = json.value("format", nlohmann::json());
  if (format != kOneFile && format != kFolder) {
    return invalid(fmt::format("{}: \"format\" is neither {} nor {}, which this wok knows", path,
                               kOneFile, kFolder));
  }
  Manifest m;
  m.name = text_of("name");
  m.sha256 = text_of("sha256");
  m.source = text_of("source");
  m.license = text_of("license");
  m.pulled_at = text_of("pulled_at");
  if (!valid_name(m.name)) return invalid(fmt::format("{}: \"name\" is not a model name", path));
  if (!valid_sha256_hex(m.sha256)) {
    return invalid(fmt::format("{}: \"sha256\" is not 64 hex digits", path));
  }
  const auto bytes = json.find("bytes");
  if (bytes == json.end() || !bytes->is_number_unsigned()) {
    return invalid(fmt::format("{}: \"bytes\" is not a whole number", path));
  }
  m.file_bytes = bytes->get<uint64_t>();
  if (format == kOneFile) return m;
  WOK_TRY(files, parse_files(json, path));
  m.files = std::move(files);
  if (m.sha256 != digest_of(m.files)) {
    return invalid(fmt::format("{}: \"sha256\" is not that of its files' list", path));
  }
  return m;
}

}  // namespace wok::store
