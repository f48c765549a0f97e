#include "app/chat/parameters.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace wok::app {
namespace {

template <class T>
Status parse(const std::string& text, T low, T high, T& out) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  // Written so that a NaN is refused too.
  if (error != std::errc() || rest != end || !(value >= low && value <= high)) {
    return invalid(fmt::format("'{}' is not a number from {} to {}", text, low, high));
  }
  out = value;
  return Ok{};
}

template <class T>
std::string text_of(T value) {
  return fmt::format("{}", value);
}

// One row of the table: a number of ChatParameters::sampling with its bounds.
#define WOK_SAMPLING(field, low, high, help)                                        \
  Parameter {                                                                       \
#field, help,                                                                     \
        [](ChatParameters& p, const std::string& v) -> Status {                       \
          using T = decltype(p.sampling.field);                                       \
          return parse<T>(v, static_cast<T>(low), static_cast<T>(high), p.sampling.field); \
        },                                                                            \
        [](const ChatParameters& p) { return text_of(p.sampling.field); } \
  }

constexpr float kTiny = 1e-6f;
constexpr int32_t kMany = 1 << 30;

constexpr std::array kParameters = {
    WOK_SAMPLING(temperature, 0, 100, "randomness; 0 = always the most likely token"),
    WOK_SAMPLING(top_k, 0, kMany, "choose among the k most likely tokens; 0 = all"),
    WOK_SAMPLING(top_p, kTiny, 1, "choose among the most likely tokens that sum up to p"),
    WOK_SAMPLING(min_p, 0, 0.999999f, "leave out tokens below this share of the most likely one"),
    WOK_SAMPLING(typical_p, kTiny, 1, "locally typical sampling; 1 = off"),
    WOK_SAMPLING(repetition_penalty, kTiny, 100, "above 1: avoid tokens seen before"),
    WOK_SAMPLING(presence_penalty, -2, 2, "avoid tokens of the answer so far"),
    WOK_SAMPLING(frequency_penalty, -2, 2, "the same, by how often they came"),
    WOK_SAMPLING(min_tokens, 0, kMany, "the answer does not end before that many tokens"),
    Parameter{"max_tokens",
              "at most that many tokens an answer; 0 = 1024, or what the context has room for",
              [](ChatParameters& p, const std::string& v) -> Status {
                return parse<int32_t>(v, 0, kMany, p.max_tokens);
              },
              [](const ChatParameters& p) { return text_of(p.max_tokens); }},
    Parameter{"seed", "same seed, same prompt: same answer (default: a new one each time)",
              [](ChatParameters& p, const std::string& v) -> Status {
                WOK_RETURN_IF_ERROR(parse<uint64_t>(v, 0, ~uint64_t{0}, p.sampling.seed));
                p.seed_given = true;
                return Ok{};
              },
              [](const ChatParameters& p) {
                return p.seed_given ? text_of(p.sampling.seed) : std::string("new each time");
              }},
    Parameter{"stop", "a text that ends the answer",
              [](ChatParameters& p, const std::string& v) -> Status {
                if (v.empty()) return invalid("a stop text cannot be empty");
                p.stops.push_back(v);
                return Ok{};
              },
              [](const ChatParameters& p) {
                return p.stops.empty() ? std::string("none")
                                       : fmt::format("{} texts", p.stops.size());
              }},
};

}  // namespace

ChatParameters default_chat_parameters() {
  ChatParameters parameters;
  parameters.sampling.temperature = 0.7f;
  parameters.sampling.top_p = 0.95f;
  return parameters;
}

std::span<const Parameter> chat_parameters() {
  return kParameters;
}

const Parameter* find_parameter(std::string_view name) {
  for (const Parameter& parameter : kParameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace wok::app
