// File types: which weight format each tensor of a quantized GGUF file gets. The rules are those of
// llama.cpp's quantizer (shared knowledge of every GGUF user: a "Q4_K_M" is what it makes), read
// from its sources as of the one in llama-cpp-python 0.3.36.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/model_file.h"
#include "models/architecture.h"

namespace wok {

// Layers whose matrices of a kind get a wider format. kSome: the first and the last eighth, and
// every third one between.
enum class Layers : uint8_t { kNone, kFirstTwo, kFirstFour, kFirstSixteenth, kFirstEighth, kSome };

struct Choice {
  const WeightFormat* usual;
  Layers layers = Layers::kNone;
  const WeightFormat* wider = nullptr;    // in those layers
  const WeightFormat* grouped = nullptr;  // where four query heads and more share one of these
};

struct Mixture {
  const char* name;    // "q4_k_m", as people write it
  uint32_t file_type;  // general.file_type
  const WeightFormat* base;
  const WeightFormat* head;  // the output matrix, or the embedding where the two are tied
  Choice attention_v, down, attention_output;
};

std::span<const Mixture> mixtures();
const Mixture* find_mixture(std::string_view name);  // null: none of that name

struct TensorPlan {
  const WeightFormat* format = nullptr;  // of the written tensor
  bool kept = false;                     // copied as it is
  bool fallback = false;                 // rows do not fit the mixture's own choice
};

// Vectors, norms, routers and what has no ".weight" keep their format.
TensorPlan plan_tensor(const Mixture& mixture, const ModelTensor& tensor,
                       const DecoderConfig& config, bool tied);

}  // namespace wok
