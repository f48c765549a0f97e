// The body of /v1/chat/completions (and, in part, of /apply-template and /tokenize): messages, and
// their rendering by the model's template.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/api_context.h"
#include "api/fields.h"
#include "api/generate_params.h"

namespace wok {

struct ChatRequest {
  GenerateParams params;
  std::vector<int32_t> prompt;
};

// Reads messages, chat_template_kwargs, add_generation_prompt, continue_final_message and renders
// them. Errors go to `fields`; the text is then "".
std::string read_chat_prompt(Fields& fields, const ServedModel& served, int64_t now_unix_s);

std::variant<ChatRequest, ApiError> read_chat_request(const ApiContext& context,
                                                      const ServedModel& served,
                                                      const nlohmann::json& body);

}  // namespace wok
