#include "formats/hf_shards.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";

// Which file each tensor is in; empty where there is no index.
Result<std::map<std::string, std::string>> read_index(const std::string& folder) {
  std::map<std::string, std::string> out;
  const std::string path = folder + "/" + kIndex;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return out;
  WOK_TRY(mapping, MappedFile::open(path));
  const auto* text = reinterpret_cast<const char*>(mapping.bytes().data());
  const Json index = Json::parse(text, text + mapping.bytes().size(), nullptr, false);
  const Json map = index.is_object() ? index.value("weight_map", Json()) : Json();
  if (!map.is_object() || map.empty()) return invalid(fmt::format("'{}' has no weight_map", path));
  for (const auto& [tensor, name] : map.items()) {
    const std::string file = name.is_string() ? name.get<std::string>() : "";
    // A name, not a path: what lies outside the folder is not the model's.
    if (file.empty() || file.find('/') != std::string::npos || file == "..") {
      return invalid(fmt::format("'{}': '{}' is in the file '{}'", path, tensor, file));
    }
    out[tensor] = file;
  }
  return out;
}

bool is_part(std::span<const uint8_t> whole, std::span<const uint8_t> part) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

Result<HfShards> open_hf_shards(const std::string& folder) {
  WOK_TRY(index, read_index(folder));
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  if (index.empty()) names.insert("model.safetensors");
  HfShards out;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    auto opened = MappedFile::open(path);
    if (!opened.ok()) {
      return Error{opened.error().kind, fmt::format("{} of the model is missing: {}",
                                                    index.empty() ? "model.safetensors" : "a shard",
                                                    opened.error().message)};
    }
    auto shard = std::make_shared<MappedFile>(std::move(opened).value());
    const size_t before = out.tensors.size();
    WOK_RETURN_IF_ERROR(parse_safetensors(shard->bytes(), path, out.tensors));
    size_t named = 0;
    for (const auto& [tensor, file] : index) {
      if (file != name) continue;
      ++named;
      const auto it = out.tensors.find(tensor);
      if (it == out.tensors.end() || !is_part(shard->bytes(), it->second.data)) {
        return invalid(fmt::format("'{}': the index names tensor '{}' in '{}', which has it not",
                                   folder, tensor, file));
      }
    }
    if (!index.empty() && out.tensors.size() - before != named) {
      return invalid(fmt::format("'{}' holds {} tensors, the index names {} of it", path,
                                 out.tensors.size() - before, named));
    }
    out.files.push_back(std::move(shard));
  }
  return out;
}

}  // namespace wok
