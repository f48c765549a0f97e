#include "formats/hf_names.h"

#include <fmt/format.h>

#include <charconv>

#include "formats/hf_encoder.h"

namespace wok {
namespace {

struct Name {
  const char* hf;
  const char* gguf;
};

constexpr Name kOutside[] = {
    {"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {"lm_head", "output"}};

constexpr Name kInLayer[] = {
    {"input_layernorm", "attn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"self_attn.rotary_emb", ""},
};

constexpr Name kOfExpert[] = {{"gate_proj", "ffn_gate_exps"}, {"up_proj", "ffn_up_exps"},
                              {"down_proj", "ffn_down_exps"}, {"w1", "ffn_gate_exps"},
                              {"w3", "ffn_up_exps"},          {"w2", "ffn_down_exps"}};

template <size_t n>
const char* find(const Name (&names)[n], std::string_view hf) {
  for (const Name& name : names) {
    if (hf == name.hf) return name.gguf;
  }
  return nullptr;
}

// The number that `text` begins with, and behind it a dot; both are taken off.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.' || n < 0 ||
      n > 100000) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return n;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::vector<HfPlace> hf_places(std::string_view module, const HfConfig& config) {
  if (config.encoder) return hf_encoder_places(module, config);
  take(module, "model.");
  take(module, "language_model.");
  take(module, "model.");
  if (const char* name = find(kOutside, module)) return {{.name = name}};
  if (module == "rotary_emb") return {{}};
  if (!take(module, "layers.")) return {};
  const std::optional<int64_t> layer = take_number(module);
  if (!layer) return {};
  const std::string prefix = fmt::format("blk.{}.", *layer);
  if (module == "post_attention_layernorm") {
    return {{.name = prefix + (config.post_norms ? "post_attention_norm" : "ffn_norm")}};
  }
  if (module == "block_sparse_moe.input_linear" || module == "shared_mlp.input_linear") {
    // Each expert's gate and up, one above the other.
    const char* kind = module.starts_with("shared") ? "shexp" : "exps";
    return {{.name = fmt::format("{}ffn_gate_{}", prefix, kind), .part = 0, .parts = 2},
            {.name = fmt::format("{}ffn_up_{}", prefix, kind), .part = 1, .parts = 2}};
  }
  if (const char* name = find(kInLayer, module)) {
    return {{.name = *name == '\0' ? "" : prefix + name}};
  }
  if (take(module, "mlp.experts.") || take(module, "block_sparse_moe.experts.")) {
    const std::optional<int64_t> expert = take_number(module);
    const char* name = find(kOfExpert, module);
    if (!expert || name == nullptr) return {};
    return {{.name = prefix + name, .expert = *expert}};
  }
  return {};
}

}  // namespace wok
