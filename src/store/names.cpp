#include "store/names.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/hubs/hub.h"
#include "store/known_models.h"

namespace wok::store {
namespace {

constexpr size_t kMaxName = 128;
constexpr size_t kMaxFileName = 200;
constexpr size_t kSha256Hex = 64;
constexpr std::string_view kSlash = "%2F";  // no name has a '%'

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool valid_part(std::string_view part, bool capitals) {
  const auto plain = [&](char c) {
    return lower_or_digit(c) || (capitals && c >= 'A' && c <= 'Z');
  };
  return !part.empty() && plain(part.front()) && std::all_of(part.begin(), part.end(), [&](char c) {
    return plain(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

bool valid_plain_name(std::string_view name) {
  if (name.size() > kMaxName) return false;
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return valid_part(name, false);
  return valid_part(name.substr(0, colon), false) && valid_part(name.substr(colon + 1), true);
}

bool valid_name(std::string_view name) {
  if (!has_hub_prefix(name)) return valid_plain_name(name);
  const Result<HubRef> ref = parse_hub_ref(name);
  return ref.ok() && ref->name() == name;
}

Result<std::string> canonical_name(std::string_view name) {
  if (const KnownModel* known = find_known_model(name); known != nullptr) return known->name;
  if (has_hub_prefix(name)) {
    WOK_TRY(ref, parse_hub_ref(name));
    return ref.name();
  }
  if (valid_plain_name(name)) return std::string(name);
  return invalid(
      fmt::format("'{}' is not a model name: a name is made of a-z, 0-9, '.', '_' and '-', begins "
                  "with a letter or a digit, and may have a tag after one ':' (for example "
                  "gemma3:270m). A hub's model is hf:org/name, ms:org/name or ollama:name:tag. A "
                  "file is given as a path that ends in .gguf.",
                  name.substr(0, kMaxName)));
}

bool looks_like_path(std::string_view name_or_path) {
  if (has_hub_prefix(name_or_path)) return false;
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".gguf");
}

std::string file_name_of(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '/' ? std::string(kSlash) : std::string(1, c);
  return out;
}

std::string name_of_file(std::string_view file_name) {
  std::string out(file_name);
  for (size_t at = out.find(kSlash); at != std::string::npos; at = out.find(kSlash, at)) {
    out.replace(at, kSlash.size(), "/");
  }
  return out;
}

bool valid_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxFileName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c >= ' ' && c != 0x7f && c != '/' && c != '\\';
         });
}

bool valid_sha256_hex(std::string_view hex) {
  return hex.size() == kSha256Hex && std::all_of(hex.begin(), hex.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace wok::store
