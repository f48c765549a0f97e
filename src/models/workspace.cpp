#include <algorithm>
#include <cmath>

#include "layers/gated.h"
#include "models/model.h"

namespace wok {
namespace {

std::vector<float> frequencies(const DecoderConfig& c, const DecoderWeights& weights, double base,
                               double scale) {
  std::vector<float> out = c.yarn_factor > 0
                               ? yarn_frequencies(c.rope_dims, base, c.yarn_factor,
                                                  c.yarn_original_tokens, c.yarn_whole_pairs)
                               : rope_frequencies(c.rope_dims, base, scale);
  for (size_t i = 0; i < weights.rope_factors.size(); ++i) out[i] /= weights.rope_factors[i];
  return out;
}

}  // namespace

Workspace::Workspace(const DecoderConfig& c, const DecoderWeights& weights, int32_t tokens,
                     int32_t sequences, int32_t logit_rows, int32_t threads)
    : max_tokens(tokens), max_sequences(sequences), max_logit_rows(logit_rows) {
  const auto n = static_cast<size_t>(tokens);
  const ExpertConfig& x = c.experts;
  const int32_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  residual.resize(n * c.embedding);
  if (c.post_norms || c.residual_scale != 1 || c.output_bias || x.shared_gate)
    sublayer.resize(n * c.embedding);
  // Of the gated MLP, or of the expert that all tokens share.
  const int32_t feed_forward = x.count > 0 ? x.shared_feed_forward : c.feed_forward;
  q.resize(n * q_width);
  k.resize(n * kv_width);
  v.resize(n * kv_width);
  gate.resize(n * feed_forward);
  up.resize(n * feed_forward);
  input.reserve(std::max(tokens, logit_rows), c.embedding, weights.ordered);
  attended.reserve(tokens, q_width, weights.ordered);
  gated.reserve(tokens, feed_forward, weights.ordered);
  if (x.count > 0) {
    const int32_t rows = tokens * x.used;
    routing.reserve({x.count, x.used, x.normalize}, tokens);
    router_logits.resize(n * x.count);
    expert_gate.resize(static_cast<size_t>(rows) * x.feed_forward);
    expert_up.resize(static_cast<size_t>(rows) * x.feed_forward);
    expert_out.resize(static_cast<size_t>(rows) * c.embedding);
    expert_input.reserve(rows, c.embedding);
    expert_gated.reserve(rows, x.feed_forward);
  }
  rope.reserve(frequencies(c, weights, c.rope_base, c.rope_scale), tokens,
               c.yarn_factor > 0 ? yarn_magnitude(c.yarn_factor) : c.rope_magnitude);
  if (c.rope_base_local > 0) {
    rope_local.reserve(rope_frequencies(c.rope_dims, c.rope_base_local, 1.0), tokens);
  }
  const float scale =
      c.attention_scale != 0 ? c.attention_scale : 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  attention.reserve({c.heads, c.kv_heads, c.head_dim, scale, c.attention_cap}, tokens, sequences);
  logits.resize(static_cast<size_t>(logit_rows) * c.vocab);
  const int32_t widest = std::max({c.embedding, q_width, feed_forward, x.feed_forward});
  scratch_stride = (linear_scratch_bytes(widest) + 127) / 128 * 128;
  scratch.resize(scratch_stride * threads + 64);
}

}  // namespace wok
