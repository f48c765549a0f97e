#include "api/json_body.h"

#include <optional>

namespace wok {
namespace {

using nlohmann::json;

// One pass before the parser: nlohmann::json has no bounds of its own, and a value of two bytes
// ("[]") becomes one of sixty in memory.
std::optional<ApiError> check_bounds(const std::string& body) {
  int depth = 0;
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        break;
      case '[':
      case '{':
        if (++depth > kMaxJsonDepth) {
          return ApiError{.message = "the body nests deeper than " + std::to_string(kMaxJsonDepth) +
                                     " levels at byte " + std::to_string(i)};
        }
        break;
      case ']':
      case '}':
        --depth;
        break;
      case ',':
        if (++values > kMaxJsonValues) {
          return ApiError{.message = "the body holds more than " + std::to_string(kMaxJsonValues) +
                                     " values"};
        }
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: …" → "…"
std::string reason(const json::parse_error& error) {
  std::string text = error.what();
  const size_t column = text.find("column ");
  const size_t colon = column == std::string::npos ? text.find("] ") : text.find(": ", column);
  if (colon != std::string::npos) text.erase(0, colon + 2);
  if (text.size() > 200) text.resize(200);
  return text;
}

}  // namespace

std::variant<json, ApiError> parse_json_body(const std::string& body) {
  if (body.empty()) return ApiError{.message = "the body is empty; a JSON object was expected"};
  if (auto error = check_bounds(body)) return *std::move(error);
  json parsed;
  try {
    parsed = json::parse(body);
  } catch (const json::parse_error& error) {
    return ApiError{.message = "the body is not valid JSON at byte " + std::to_string(error.byte) +
                               ": " + reason(error)};
  } catch (const json::exception&) {  // a number beyond double's range
    return ApiError{.message = "the body holds a number that is out of range"};
  }
  if (!parsed.is_object()) {
    return ApiError{.message =
                        std::string("the body must be a JSON object, not ") + parsed.type_name()};
  }
  return parsed;
}

}  // namespace wok
