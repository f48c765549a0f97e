#include "store/manifest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/names.h"

namespace wok::store {
namespace {

constexpr int kFormat = 1;

}  // namespace

std::string to_json(const Manifest& m) {
  const nlohmann::ordered_json json = {{"format", kFormat},       {"name", m.name},
                                       {"sha256", m.sha256},      {"bytes", m.file_bytes},
                                       {"source", m.source},      {"license", m.license},
                                       {"pulled_at", m.pulled_at}};
  return json.dump(2) + "\n";
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& path) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid(fmt::format("{} is not a JSON object", path));
  const auto text_of = [&](const char* key) -> std::string {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  if (json.value("format", nlohmann::json()) != kFormat) {
    return invalid(
        fmt::format("{}: \"format\" is not {}, the only one this wok knows", path, kFormat));
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
  return m;
}

}  // namespace wok::store
