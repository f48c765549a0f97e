// The sampling parameters of `wok run`, as one table that both the flags and /set read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sampling/params.h"

namespace wok::app {

struct ChatParameters {
  SamplingParams sampling;
  int32_t max_tokens = 0;   // 0: 1024, or as many as the context has room for
  bool seed_given = false;  // otherwise each answer gets a new one
  std::vector<std::string> stops;
};

struct Parameter {
  std::string_view name;  // "top_p"; the flag is --top-p
  std::string_view help;
  Status (*set)(ChatParameters& parameters, const std::string& value);
  std::string (*get)(const ChatParameters& parameters);
};

// Defaults for a chat with a small model; those of the API are OpenAI's.
ChatParameters default_chat_parameters();

std::span<const Parameter> chat_parameters();
const Parameter* find_parameter(std::string_view name);

}  // namespace wok::app
