#include "store/hubs/words.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace wok::store {
namespace {

constexpr size_t kMaxRef = 200;

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool valid_ref_path(std::string_view text) {
  bool begin = true;
  for (const char c : text) {
    if (begin && !letter_or_digit(c)) return false;
    if (!begin && !letter_or_digit(c) &&
        std::string_view("/._-+=").find(c) == std::string_view::npos) {
      return false;
    }
    begin = c == '/';
  }
  return !begin;
}

Result<HubRef> parse_repo_ref(std::string_view prefix, std::string_view text) {
  HubRef ref;
  const auto cut = [&](char mark, std::string_view& rest) {
    const size_t at = rest.find(mark);
    const std::string_view part = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
    return std::string(part);
  };
  std::string_view rest = text;
  const bool has_variant = rest.find(':') != std::string_view::npos;
  const std::string left = cut(':', rest);
  ref.variant = std::string(rest);
  std::string_view place = left;
  const bool has_revision = place.find('@') != std::string_view::npos;
  ref.repo = cut('@', place);
  ref.revision = std::string(place);
  const bool good = text.size() <= kMaxRef && valid_ref_path(ref.repo) &&
                    std::count(ref.repo.begin(), ref.repo.end(), '/') <= 1 &&
                    (has_revision ? valid_ref_path(ref.revision) : ref.revision.empty()) &&
                    (has_variant ? valid_ref_path(ref.variant) : ref.variant.empty());
  if (good) return ref;
  return invalid(
      fmt::format("'{0}:{1}' is not understood: expected {0}:org/name, and behind it, if wanted, "
                  "@revision and :file.gguf or :quant, as in {0}:org/name@main:Q4_K_M",
                  prefix, text.substr(0, kMaxRef)));
}

Result<std::string> endpoint_of(std::string_view variable, std::string value,
                                std::string_view fallback) {
  if (value.empty()) value = fallback;
  if (value.find("://") == std::string::npos) value = "https://" + value;
  while (value.ends_with('/')) value.pop_back();
  const bool web = value.starts_with("https://") || value.starts_with("http://");
  const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '@';
  });
  if (web && plain && !value.ends_with(':')) return value;
  return invalid(
      fmt::format("{} is '{}', expected an address such as {}", variable, value, fallback));
}

Result<std::string> bearer(std::string_view variable, const std::string& token) {
  if (token.empty()) return std::string();
  if (std::any_of(token.begin(), token.end(),
                  [](unsigned char c) { return c <= ' ' || c > '~'; })) {
    return invalid(fmt::format("{} holds a space or a character that no token has", variable));
  }
  return "Authorization: Bearer " + token;
}

Result<nlohmann::json> parse_answer(const std::string& text, const std::string& url) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return invalid(
      fmt::format("the answer from {} is not JSON, or was cut short. Is that address a hub, "
                  "and nothing in between that asks for a login?",
                  url));
}

std::string text_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

uint64_t number_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

bool safe_repo_path(std::string_view path) {
  if (path.empty() || path.size() > 1000) return false;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == ".." || name.size() > 200) return false;
    begin = end + 1;
  }
  return std::all_of(path.begin(), path.end(),
                     [](unsigned char c) { return c >= ' ' && c != 0x7f && c != '\\'; });
}

}  // namespace wok::store
