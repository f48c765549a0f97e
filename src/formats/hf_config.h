// config.json of a Hugging Face folder in the terms of GGUF's keys.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace wok {

using HfKey = std::variant<int64_t, double, std::string>;

struct HfConfig {
  std::string architecture;           // as GGUF names it
  std::map<std::string, HfKey> keys;  // whole keys ("llama.block_count")
  // What GGUF holds as tensors beside: "rope_freqs" (Llama 3), "rope_factors_short" and "_long".
  std::map<std::string, std::vector<float>> rope_vectors;
  bool norms_plus_one = false;  // norm weights are stored without the 1 (Gemma)
  bool post_norms = false;      // post_attention_layernorm follows its sublayer
  bool tied = false;            // lm_head is the embedding
  bool encoder = false;         // hf_encoder.h; every module has a bias
  bool rank = false;            // with a classifier of one label on top
};

// Errors: kUnsupported names a model type or a setting that wok does not run; kInvalid a field that
// is missing or of the wrong type. `folder` stands in messages.
Result<HfConfig> read_hf_config(const nlohmann::json& config, const std::string& folder);

}  // namespace wok
