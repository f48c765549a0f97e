// How a Hugging Face configuration rotates queries and keys, in the terms of GGUF's keys.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "formats/hf_config.h"

namespace wok {

// Base, rotated part and scaling, into out.keys and out.rope_vectors; out.architecture and its
// context length are there already. Errors: as read_hf_config's.
Status read_hf_rope(const nlohmann::json& config, const std::string& folder, HfConfig& out);

}  // namespace wok
