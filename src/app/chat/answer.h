// One answer: prompt in, text out as it comes. Runs a request on the engine and waits for its end.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/served_model.h"
#include "app/chat/parameters.h"
#include "base/result.h"

namespace wok::app {

struct Answer {
  std::string text;
  FinishReason finish = FinishReason::kNone;  // kAbort: interrupted (not by a stop text)
  int32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  uint64_t seed = 0;
  double first_token_s = 0;  // from submit to the first token
  double decode_s = 0;       // from the first token to the last
};

// The prompt's tokens: the conversation through the model's chat template, or for a model without
// one the last message's text as it stands.
Result<std::vector<int32_t>> prompt_tokens(const ServedModel& model,
                                           const nlohmann::json& messages);

// print: gets the text as it becomes certain. cancelled: when true the request is aborted and what
// came so far is the answer. Errors: kTooLarge says how many tokens there are and what to do.
Result<Answer> generate(ServedModel& model, std::vector<int32_t> prompt,
                        const ChatParameters& parameters,
                        const std::function<void(std::string_view)>& print,
                        const std::atomic<bool>& cancelled);

// "ttft 0.1 s, 12.3 tokens/s …"
std::string timing_line(const Answer& answer);

}  // namespace wok::app
