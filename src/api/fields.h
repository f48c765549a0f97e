// Reads the members of a JSON object, keeps the first error, and knows in the end which members
// nobody asked for: a parameter is used, accepted as harmless, or refused by name; never ignored.
//
//   Fields fields(body);
//   fields.number("temperature", {.low = 0, .high = 2}, params.temperature);
//   if (auto error = fields.finish()) …
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/api_error.h"

namespace wok {

struct NumberRange {
  double low = 0;
  double high = 0;
  bool low_open = false;  // low itself is outside
  bool high_open = false;
};

class Fields {
 public:
  // `object` must outlive this. `where` comes before names in messages: "messages[2]."
  explicit Fields(const nlohmann::json& object, std::string where = "");

  // The member, marked as known; nullptr when absent or null (OpenAI treats null as absent).
  const nlohmann::json* get(std::string_view name);
  bool has(std::string_view name) { return get(name) != nullptr; }

  // Each leaves `out` alone when the member is absent, and records an error when it is not as
  // asked.
  void number(std::string_view name, NumberRange range, float& out);
  void integer(std::string_view name, int64_t low, int64_t high, int32_t& out);
  void boolean(std::string_view name, bool& out);
  void string(std::string_view name, size_t max_bytes, std::string& out);
  void token_ids(std::string_view name, int32_t vocab, size_t max_count, std::vector<int32_t>& out);
  void any_integer(std::string_view name, std::optional<uint64_t>& out);  // seed: all 64 bits

  void accept(std::string_view name) { get(name); }

  void fail(std::string_view name, std::string message, std::string code = "");
  // "`temperature` must be …, found 7"
  void fail_value(std::string_view name, const std::string& expected, const nlohmann::json& found);

  const std::optional<ApiError>& error() const { return error_; }
  // The first error; members nobody asked for are one.
  std::optional<ApiError> finish();

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::unordered_set<std::string> known_;
  std::optional<ApiError> error_;
};

// A value as an error message shows it: short, one line, valid UTF-8.
std::string describe(const nlohmann::json& value);

}  // namespace wok
