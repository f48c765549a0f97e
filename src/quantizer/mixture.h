// File types: which weight format each tensor of a quantized GGUF file gets. The rules are those of
// llama.cpp's quantizer (shared knowledge of every GGUF user: a "Q4_K_M" is what it makes), read
// from its sources as of the one in llama-cpp-python 0.3.36.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "models/architecture.h"

namespace wok {

// Which layers' attn_v and ffn_down get a wider format.
enum class More : uint8_t { kNone, kSomeLayers, kFirstSixteenth, kFirstEighth, kFirstFour, kAll };

struct Mixture {
  const char* name;    // "q4_k_m", as people write it
  uint32_t file_type;  // general.file_type
  const WeightFormat* base;
  const WeightFormat* head;         // the output matrix, or the embedding where the two are tied
  const WeightFormat* attention_v;  // in the layers that `more_v` says; base in the others
  More more_v;
  const WeightFormat* down;
  More more_down;
  const WeightFormat* rest_v;     // attn_v in the other layers
  const WeightFormat* rest_down;  // ffn_down in the other layers
  const WeightFormat* attention_output;
};

std::span<const Mixture> mixtures();
const Mixture* find_mixture(std::string_view name);  // null: none of that name

struct TensorPlan {
  const WeightFormat* format = nullptr;  // of the written tensor
  bool kept = false;                     // copied as it is
  bool fallback = false;                 // rows do not fit the mixture's own choice
};

// Vectors, norms, routers and what has no ".weight" keep their format.
TensorPlan plan_tensor(const Mixture& mixture, const GgufTensor& tensor,
                       const DecoderConfig& config, bool tied);

}  // namespace wok
