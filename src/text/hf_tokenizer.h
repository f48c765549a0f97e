// tokenizer.json and its companions in a Hugging Face folder, in the terms of TokenizerData.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

namespace wok {

// config and generation: tokenizer_config.json and generation_config.json, or "". Errors: kInvalid
// for what is no tokenizer.json; kUnsupported names the model, normalizer or pre-tokenizer that wok
// does not have.
Result<TokenizerData> read_hf_tokenizer(std::string_view tokenizer, std::string_view config,
                                        std::string_view generation);

}  // namespace wok
