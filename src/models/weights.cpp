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
    WOK_RETURN_IF_ERROR(from.vector(prefix + "ffn_norm.weight", e, layer.feed_forward_norm));
  }
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_q.weight", e, q, layer.q));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_k.weight", e, kv, layer.k));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_v.weight", e, kv, layer.v));
  WOK_RETURN_IF_ERROR(from.matrix(prefix + "attn_output.weight", q, e, layer.o));
  if (c.experts.count > 0) {
    WOK_RETURN_IF_ERROR(collect_experts(from, c, prefix, layer));
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

// Tensors no part of the decoder reads mean that it would compute something else than the model.
Status check_all_used(const ModelFile& file, const DecoderConfig& c) {
  for (const ModelTensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    const bool added =
        c.qkv_bias && (name.ends_with("attn_q.bias") || name.ends_with("attn_k.bias") ||
                       name.ends_with("attn_v.bias"));
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
  if (file.find_tensor("rope_freqs.weight") != nullptr) {
    WOK_RETURN_IF_ERROR(
        from.vector("rope_freqs.weight", config.rope_dims / 2, weights.rope_factors));
    for (const float factor : weights.rope_factors) {
      if (!(factor > 1e-6f && factor < 1e9f)) {
        return invalid(fmt::format("'{}': rope_freqs.weight holds {}", file.path(), factor));
      }
    }
  }
  return places;
}

}  // namespace wok
