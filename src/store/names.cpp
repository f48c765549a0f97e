#include "store/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace wok::store {
namespace {

constexpr size_t kMaxName = 128;
constexpr size_t kSha256Hex = 64;

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool valid_part(std::string_view part) {
  return !part.empty() && lower_or_digit(part.front()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return lower_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace

bool valid_name(std::string_view name) {
  if (name.size() > kMaxName) return false;
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return valid_part(name);
  return valid_part(name.substr(0, colon)) && valid_part(name.substr(colon + 1));
}

Status check_name(std::string_view name) {
  if (valid_name(name)) return Ok{};
  return invalid(
      fmt::format("'{}' is not a model name: a name is made of a-z, 0-9, '.', '_' and '-', begins "
                  "with a letter or a digit, and may have a tag after one ':' (for example "
                  "gemma3:270m). A file is given as a path that ends in .gguf.",
                  name.substr(0, kMaxName)));
}

bool looks_like_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".gguf");
}

bool valid_sha256_hex(std::string_view hex) {
  return hex.size() == kSha256Hex && std::all_of(hex.begin(), hex.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace wok::store
