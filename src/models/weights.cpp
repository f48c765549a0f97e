#include "models/weights.h"

#include <fmt/format.h>

#include "models/collect.h"

namespace wok {
namespace {

Status collect_experts(Collector& from, const DecoderConfig& c, const std::string& prefix,
                       LayerWeights& layer) {
  const int64_t e = c.embedding, n = c.experts.count, f = c.experts.feed_forward;
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_gate_inp.weight", e, n, layer.router));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_gate_exps.weight", e, n * f, layer.expert_gate));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_up_exps.weight", e, n * f, layer.expert_up));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_down_exps.weight", f, n * e, layer.expert_down));
  if (c.experts.biases) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "ffn_gate_inp.bias", n, layer.router_bias));
    WOK_RETURN_IF_ERROR(from.vectors(prefix + "ffn_gate_exps.bias", f, n, layer.gate_bias));
    WOK_RETURN_IF_ERROR(from.vectors(prefix + "ffn_up_exps.bias", f, n, layer.up_bias));
    WOK_RETURN_IF_ERROR(from.vectors(prefix + "ffn_down_exps.bias", e, n, layer.down_bias));
  }
  if (const int64_t shared = c.experts.shared_feed_forward; shared > 0) {
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_gate_shexp.weight", e, shared, layer.gate));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_up_shexp.weight", e, shared, layer.up));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_down_shexp.weight", shared, e, layer.down));
  }
  if (c.experts.shared_gate) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "ffn_gate_inp_shexp.weight", e, layer.shared_gate));
  }
  return Ok{};
}

Status collect_layer(Collector& from, const DecoderConfig& c, const std::string& prefix,
                     LayerWeights& layer) {
  const int64_t e = c.embedding, f = c.feed_forward;
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  if (c.pre_norms) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_norm.weight", e, layer.attention_norm));
    WOK_RETURN_IF_ERROR(
        from.vector(prefix + c.feed_forward_norm + ".weight", e, layer.feed_forward_norm));
  }
  if (c.fused_projections) {
    WOK_RETURN_IF_ERROR(from.stacked(prefix + "attn_qkv.weight", e,
                                     {{&layer.q, q}, {&layer.k, kv}, {&layer.v, kv}}));
  } else {
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_q.weight", e, q, layer.q));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_k.weight", e, kv, layer.k));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_v.weight", e, kv, layer.v));
  }
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_output.weight", q, e, layer.o));
  if (c.experts.count > 0) {
    WOK_RETURN_IF_ERROR(collect_experts(from, c, prefix, layer));
  } else if (c.fused_projections) {
    WOK_RETURN_IF_ERROR(
        from.stacked(prefix + "ffn_up.weight", e, {{&layer.gate, f}, {&layer.up, f}}));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_down.weight", f, e, layer.down));
  } else {
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_gate.weight", e, f, layer.gate));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_up.weight", e, f, layer.up));
    WOK_RETURN_IF_ERROR(from.matrix(prefix + "ffn_down.weight", f, e, layer.down));
  }
  if (c.qkv_bias) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_q.bias", q, layer.q_bias));
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_k.bias", kv, layer.k_bias));
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_v.bias", kv, layer.v_bias));
  }
  if (c.output_bias) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_output.bias", e, layer.o_bias));
  }
  if (c.attention_sinks) {
    WOK_RETURN_IF_ERROR(from.vector(prefix + "attn_sinks.weight", c.heads, layer.sinks));
  }
  if (c.qk_norm != QkNorm::kNone) {
    const bool whole = c.qk_norm == QkNorm::kWhole;
    WOK_RETURN_IF_ERROR(
        from.vector(prefix + "attn_q_norm.weight", whole ? q : c.head_dim, layer.q_norm));
    WOK_RETURN_IF_ERROR(
        from.vector(prefix + "attn_k_norm.weight", whole ? kv : c.head_dim, layer.k_norm));
  }
  if (c.post_norms) {
    WOK_RETURN_IF_ERROR(
        from.vector(prefix + "post_attention_norm.weight", e, layer.post_attention_norm));
    WOK_RETURN_IF_ERROR(
        from.vector(prefix + "post_ffw_norm.weight", e, layer.post_feed_forward_norm));
  }
  return Ok{};
}

Status collect_rope_factors(Collector& from, const ModelFile& file, const DecoderConfig& c,
                            std::vector<float>& factors) {
  std::vector<std::string> names;  // the last of them counts; all of them are checked
  if (c.long_rope_beyond > 0) {
    const int32_t served = c.served_tokens > 0 ? c.served_tokens : c.context_tokens;
    names = {"rope_factors_short.weight", "rope_factors_long.weight"};
    if (served <= c.long_rope_beyond) std::swap(names[0], names[1]);
  } else if (file.find_tensor("rope_freqs.weight") != nullptr) {
    names = {"rope_freqs.weight"};
  }
  for (const std::string& name : names) {
    WOK_RETURN_IF_ERROR(from.vector(name, c.rope_dims / 2, factors));
    for (const float factor : factors) {
      if (!(factor > 1e-6f && factor < 1e9f)) {
        return invalid(fmt::format("'{}': {} holds {}", file.path(), name, factor));
      }
    }
  }
  return Ok{};
}

// Tensors no part of the decoder reads mean that it would compute something else than the model.
Status check_all_used(const ModelFile& file, const DecoderConfig& c) {
  for (const ModelTensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    const bool added =
        (c.qkv_bias && (name.ends_with("attn_q.bias") || name.ends_with("attn_k.bias") ||
                        name.ends_with("attn_v.bias"))) ||
        (c.output_bias && name.ends_with("attn_output.bias")) ||
        (c.experts.biases && (name.ends_with("ffn_gate_inp.bias") || name.ends_with("_exps.bias")));
    if (name.ends_with(".scale")) {
      return unsupported(fmt::format("'{}' scales whole tensors ('{}'), which wok does not do",
                                     file.path(), name));
    }
    if (name.ends_with(".bias") && !added) {
      return unsupported(fmt::format(
          "'{}' has biases ('{}') that wok does not add for this architecture", file.path(), name));
    }
  }
  return Ok{};
}

}  // namespace

Result<std::vector<MatrixPlace>> collect_weights(const ModelFile& file, const DecoderConfig& config,
                                                 DecoderWeights& weights) {
  std::vector<MatrixPlace> places;
  Collector from(file, places);
  WOK_RETURN_IF_ERROR(check_all_used(file, config));
  WOK_TRY(embedding, from.find("token_embd.weight", config.embedding, config.vocab));
  if (embedding->source != nullptr) {
    return unsupported(fmt::format(
        "'{}' has a quantized embedding, which wok does not look rows up in", file.path()));
  }
  weights.embedding = embedding;
  weights.layers.resize(config.layers);
  for (int32_t i = 0; i < config.layers; ++i) {
    WOK_RETURN_IF_ERROR(collect_layer(from, config, fmt::format("blk.{}.", i), weights.layers[i]));
  }
  WOK_RETURN_IF_ERROR(from.vector("output_norm.weight", config.embedding, weights.output_norm));
  const bool tied = file.find_tensor("output.weight") == nullptr;
  WOK_RETURN_IF_ERROR(from.matrix(tied ? "token_embd.weight" : "output.weight", config.embedding,
                                  config.vocab, weights.output));
  WOK_RETURN_IF_ERROR(collect_rope_factors(from, file, config, weights.rope_factors));
  return places;
}

}  // namespace wok
