#include <algorithm>
#include <cmath>

#include "layers/gated.h"
#include "models/model.h"

namespace wok {
namespace {

std::vector<float> frequencies(const DecoderConfig& c, const DecoderWeights& weights, double base,
                               double scale) {
  std::vector<float> out = rope_frequencies(c.rope_dims, base, scale);
  for (size_t i = 0; i < weights.rope_factors.size(); ++i) out[i] /= weights.rope_factors[i];
  return out;
}

}  // namespace

Workspace::Workspace(const DecoderConfig& c, const DecoderWeights& weights, int32_t tokens,
                     int32_t sequences, int32_t logit_rows, int32_t threads)
    : max_tokens(tokens), max_sequences(sequences), max_logit_rows(logit_rows) {
  const auto n = static_cast<size_t>(tokens);
  const int32_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  residual.resize(n * c.embedding);
  if (c.post_norms) sublayer.resize(n * c.embedding);
  q.resize(n * q_width);
  k.resize(n * kv_width);
  v.resize(n * kv_width);
  gate.resize(n * c.feed_forward);
  up.resize(n * c.feed_forward);
  input.reserve(std::max(tokens, logit_rows), c.embedding);
  attended.reserve(tokens, q_width);
  gated.reserve(tokens, c.feed_forward);
  rope.reserve(frequencies(c, weights, c.rope_base, c.rope_scale), tokens);
  if (c.rope_base_local > 0) {
    rope_local.reserve(rope_frequencies(c.rope_dims, c.rope_base_local, 1.0), tokens);
  }
  const float scale =
      c.attention_scale != 0 ? c.attention_scale : 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  attention.reserve({c.heads, c.kv_heads, c.head_dim, scale}, tokens, sequences);
  logits.resize(static_cast<size_t>(logit_rows) * c.vocab);
  const int32_t widest = std::max({c.embedding, q_width, c.feed_forward});
  scratch_stride = (linear_scratch_bytes(widest) + 127) / 128 * 128;
  scratch.resize(scratch_stride * threads + 64);
}

}  // namespace wok
