// A request's body as JSON, within bounds that keep a hostile one from costing memory or stack.
#pragma once

#include <string>
#include <variant>

#include <nlohmann/json.hpp>

#include "api/api_error.h"

namespace wok {

constexpr int kMaxJsonDepth = 64;
constexpr size_t kMaxJsonValues = 2'000'000;

// The body must be one JSON object. Errors are 400s that say at which byte the trouble is.
std::variant<nlohmann::json, ApiError> parse_json_body(const std::string& body);

}  // namespace wok
