#include "api/fields.h"

#include <fmt/format.h>

namespace wok {

using nlohmann::json;

std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case json::value_t::object:
      return "an object";
    case json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      if (text.size() <= 60) return "\"" + text + "\"";
      return fmt::format("a string of {} bytes", text.size());
    }
    default:
      return value.dump();
  }
}

Fields::Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

const json* Fields::get(std::string_view name) {
  const auto known = known_.emplace(name).first;
  const auto found = object_.find(*known);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::number(std::string_view name, NumberRange range, float& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : 0;
  const bool low_ok = range.low_open ? number > range.low : number >= range.low;
  const bool high_ok = range.high_open ? number < range.high : number <= range.high;
  if (!value->is_number() || !low_ok || !high_ok) {
    fail_value(name,
               fmt::format("a number {} {} and {} {}", range.low_open ? "above" : "at least",
                           range.low, range.high_open ? "below" : "at most", range.high),
               *value);
    return;
  }
  out = static_cast<float>(number);
}

void Fields::integer(std::string_view name, int64_t low, int64_t high, int32_t& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  const bool huge = value->is_number_unsigned() &&
                    value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
  if (!value->is_number_integer() || huge || value->get<int64_t>() < low ||
      value->get<int64_t>() > high) {
    fail_value(name, fmt::format("an integer from {} to {}", low, high), *value);
    return;
  }
  out = static_cast<int32_t>(value->get<int64_t>());
}

void Fields::any_integer(std::string_view name, std::optional<uint64_t>& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  if (!value->is_number_integer()) {
    fail_value(name, "a 64-bit integer", *value);
    return;
  }
  out = value->is_number_unsigned() ? value->get<uint64_t>()
                                    : static_cast<uint64_t>(value->get<int64_t>());
}

void Fields::boolean(std::string_view name, bool& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) {
    fail_value(name, "true or false", *value);
    return;
  }
  out = value->get<bool>();
}

void Fields::string(std::string_view name, size_t max_bytes, std::string& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  if (!value->is_string() || value->get_ref<const std::string&>().size() > max_bytes) {
    fail_value(name, fmt::format("a string of at most {} bytes", max_bytes), *value);
    return;
  }
  out = value->get_ref<const std::string&>();
}

void Fields::token_ids(std::string_view name, int32_t vocab, size_t max_count,
                       std::vector<int32_t>& out) {
  const json* value = get(name);
  if (value == nullptr) return;
  if (!value->is_array() || value->size() > max_count) {
    fail_value(name, fmt::format("an array of at most {} token ids", max_count), *value);
    return;
  }
  out.reserve(value->size());
  for (const json& id : *value) {
    if (!id.is_number_integer() || id < 0 || id >= vocab) {
      fail_value(name, fmt::format("an array of token ids from 0 to {}", vocab - 1), id);
      return;
    }
    out.push_back(id.get<int32_t>());
  }
}

void Fields::fail(std::string_view name, std::string message, std::string code) {
  if (error_) return;
  error_ = ApiError{
      .message = std::move(message), .param = where_ + std::string(name), .code = std::move(code)};
}

void Fields::fail_value(std::string_view name, const std::string& expected, const json& found) {
  fail(name, fmt::format("`{}{}` must be {}, found {}", where_, name, expected, describe(found)),
       "invalid_value");
}

std::optional<ApiError> Fields::finish() {
  if (error_) return error_;
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name) || value.is_null()) continue;
    const std::string shown = name.substr(0, 100);
    fail(shown,
         fmt::format("`{}{}` is not a parameter that wok knows; leave it out", where_, shown),
         "unknown_parameter");
    break;
  }
  return error_;
}

}  // namespace wok
