// What `wok show` and the chat's /show print of a model.
#pragma once

#include <string>

#include "models/model_info.h"

namespace wok::app {

// context_tokens: what to compute the memory for; 0 = the model's own context.
std::string model_report(const ModelInfo& info, int32_t context_tokens);

}  // namespace wok::app
