#include "quantizer/mixture.h"

#include <algorithm>
#include <charconv>

namespace wok {
namespace {

#define F(id) &kWeightFormat_##id
// A format for everything; `head` for the output matrix.
constexpr Mixture plain(const char* name, uint32_t type, const WeightFormat* base,
                        const WeightFormat* head) {
  return {name, type, base, head, {base}, {base}, {base}};
}

const Mixture kMixtures[] = {
    plain("f32", 0, F(f32), F(f32)),
    plain("f16", 1, F(f16), F(f16)),
    plain("bf16", 32, F(bf16), F(bf16)),
    plain("q8_0", 7, F(q8_0), F(q8_0)),
    plain("q4_0", 2, F(q4_0), F(q6_k)),
    plain("q4_1", 3, F(q4_1), F(q6_k)),
    plain("q5_0", 8, F(q5_0), F(q6_k)),
    plain("q5_1", 9, F(q5_1), F(q6_k)),
    plain("q6_k", 18, F(q6_k), F(q6_k)),
    plain("q3_k_s", 11, F(q3_k), F(q6_k)),
    plain("q5_k_s", 16, F(q5_k), F(q6_k)),
    {"iq4_nl",
     25,
     F(iq4_nl),
     F(q6_k),
     {F(iq4_nl), Layers::kNone, nullptr, F(q5_k)},
     {F(iq4_nl), Layers::kFirstEighth, F(q5_k)},
     {F(iq4_nl)}},
    {"iq4_xs",
     30,
     F(iq4_xs),
     F(q6_k),
     {F(iq4_xs), Layers::kNone, nullptr, F(q5_k)},
     {F(iq4_xs), Layers::kFirstEighth, F(q5_k)},
     {F(iq4_xs)}},
    {"q2_k",
     10,
     F(q2_k),
     F(q6_k),
     {F(q3_k), Layers::kNone, nullptr, F(q4_k)},
     {F(q3_k)},
     {F(q3_k)}},
    {"q3_k_m",
     12,
     F(q3_k),
     F(q6_k),
     {F(q4_k), Layers::kFirstTwo, F(q5_k)},
     {F(q4_k), Layers::kFirstSixteenth, F(q5_k)},
     {F(q4_k)}},
    {"q3_k_l", 13, F(q3_k), F(q6_k), {F(q5_k)}, {F(q5_k)}, {F(q5_k)}},
    {"q4_k_s",
     14,
     F(q4_k),
     F(q6_k),
     {F(q4_k), Layers::kFirstFour, F(q5_k)},
     {F(q4_k), Layers::kFirstEighth, F(q5_k)},
     {F(q4_k)}},
    {"q4_k_m",
     15,
     F(q4_k),
     F(q6_k),
     {F(q4_k), Layers::kSome, F(q6_k)},
     {F(q4_k), Layers::kSome, F(q6_k)},
     {F(q4_k)}},
    {"q5_k_m",
     17,
     F(q5_k),
     F(q6_k),
     {F(q5_k), Layers::kSome, F(q6_k)},
     {F(q5_k), Layers::kSome, F(q6_k)},
     {F(q5_k)}},
};

bool among(Layers which, int32_t layer, int32_t layers) {
  const int32_t eighth = layers / 8;
  switch (which) {
    case Layers::kNone:
      return false;
    case Layers::kFirstTwo:
      return layer < 2;
    case Layers::kFirstFour:
      return layer < 4;
    case Layers::kFirstSixteenth:
      return layer < layers / 16;
    case Layers::kFirstEighth:
      return layer < eighth;
    case Layers::kSome:
      return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
  }
  return false;
}

int32_t layer_of(std::string_view name) {
  int32_t layer = 0;
  if (!name.starts_with("blk.")) return -1;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return error == std::errc() ? layer : -1;
}

// Where a row is no multiple of 256: the format of 32 that loses no more.
const WeightFormat* fallback_of(const WeightFormat* format) {
  if (format == F(q2_k) || format == F(q3_k)) return F(q4_0);
  if (format == F(q4_k)) return F(q5_0);
  if (format == F(q5_k)) return F(q5_1);
  if (format == F(q6_k)) return F(q8_0);
  if (format == F(iq4_xs)) return F(iq4_nl);
  return F(f16);
}

const WeightFormat* wanted(const Mixture& m, std::string_view name, const DecoderConfig& c,
                           bool tied) {
  if (name == "output.weight" || (tied && name == "token_embd.weight")) return m.head;
  const auto choose = [&](const Choice& choice) {
    if (choice.grouped != nullptr && c.heads / c.kv_heads >= 4) return choice.grouped;
    return among(choice.layers, layer_of(name), c.layers) ? choice.wider : choice.usual;
  };
  if (name.ends_with("attn_v.weight")) return choose(m.attention_v);
  if (name.find("ffn_down") != std::string_view::npos) return choose(m.down);
  if (name.ends_with("attn_output.weight")) return choose(m.attention_output);
  return m.base;
}

}  // namespace

std::span<const Mixture> mixtures() {
  return kMixtures;
}

const Mixture* find_mixture(std::string_view name) {
  for (const Mixture& m : kMixtures) {
    if (name == m.name) return &m;
  }
  return nullptr;
}

TensorPlan plan_tensor(const Mixture& mixture, const ModelTensor& tensor,
                       const DecoderConfig& config, bool tied) {
  const std::string_view name = tensor.name;
  const bool matrix = tensor.dims > 1 && name.ends_with(".weight") &&
                      name.find("_norm") == std::string_view::npos &&
                      name.find("ffn_gate_inp") == std::string_view::npos;
  if (!matrix) return {tensor.format, true, false};
  TensorPlan plan{wanted(mixture, name, config, tied), false, false};
  while (tensor.shape[0] % plan.format->block != 0) {
    plan.format = fallback_of(plan.format);
    plan.fallback = true;
  }
  plan.kept = plan.format == tensor.format;
  return plan;
}

#undef F

}  // namespace wok
