// The body of /v1/completions: one prompt or many, as text or as token ids.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/api_context.h"
#include "api/generate_params.h"

namespace wok {

struct CompletionRequest {
  GenerateParams params;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echo;  // one a prompt, or empty
};

// OpenAI's default for this endpoint, where a request names no max_tokens.
constexpr int32_t kCompletionDefaultTokens = 16;

std::variant<CompletionRequest, ApiError> read_completion_request(const ApiContext& context,
                                                                  const ServedModel& served,
                                                                  const nlohmann::json& body);

}  // namespace wok
