// Where a module of a Hugging Face checkpoint stands among GGUF's tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/hf_config.h"

namespace wok {

struct HfPlace {
  std::string name;     // "blk.3.ffn_up"; without .weight or .bias
  int64_t expert = -1;  // of experts, which one
  // Of a module that holds several of GGUF's tensors one above the other: which part of how many.
  int32_t part = 0, parts = 1;
};

// The places of a module ("model.layers.3.mlp.up_proj"), one a part; empty for one that wok does
// not know. "" as a name: nothing that is read ("rotary_emb").
std::vector<HfPlace> hf_places(std::string_view module, const HfConfig& config);

}  // namespace wok
