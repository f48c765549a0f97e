#include "layers/attention.h"

#include "base/check.h"

namespace wok {

void Attention::reserve(const AttentionShape& shape, int32_t max_tokens, int32_t max_sequences) {
  shape_ = shape;
  const int32_t group = shape.heads / shape.kv_heads;
  const int32_t head_runs = (group + kMaxAttendRows - 1) / kMaxAttendRows;
  tiles_.reserve(static_cast<size_t>(max_tokens + max_sequences) * shape.kv_heads * head_runs);
}

void Attention::plan(const Batch& batch) {
  tiles_.clear();
  const int32_t group = shape_.heads / shape_.kv_heads;
  const int32_t heads_per_tile = std::min(group, kMaxAttendRows);
  const int32_t tokens_per_tile = kMaxAttendRows / heads_per_tile;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const SequenceSpan& span = batch.sequences[s];
    for (int32_t t = 0; t < span.query_len; t += tokens_per_tile) {
      const int32_t tokens = std::min(tokens_per_tile, span.query_len - t);
      for (int32_t kv_head = 0; kv_head < shape_.kv_heads; ++kv_head) {
        for (int32_t h = 0; h < group; h += heads_per_tile) {
          tiles_.push_back({static_cast<int32_t>(s), kv_head, span.query_begin + t, tokens, h,
                            std::min(heads_per_tile, group - h)});
        }
      }
    }
  }
}

void Attention::run(const Compute& compute, const Batch& batch, const PageMemory& memory,
                    int32_t layer, int32_t window, const float* q, float* out) const {
  const KvKernels& kernels = compute.kernels->*memory.shape().format->kernels;
  const int32_t group = shape_.heads / shape_.kv_heads;
  const int64_t row_stride = int64_t{shape_.heads} * shape_.head_dim;
  compute.pool->run(static_cast<int32_t>(tiles_.size()), [&](int32_t task, int32_t) {
    // The last tiles of a long prompt are the longest: claim those first.
    const Tile& tile = tiles_[tiles_.size() - 1 - task];
    AttendArgs args;
    args.kv = memory.view(layer, tile.kv_head);
    args.page_table = batch.sequences[tile.sequence].page_table;
    args.head_dim = shape_.head_dim;
    args.scale = shape_.scale;
    for (int32_t t = tile.first_token; t < tile.first_token + tile.tokens; ++t) {
      const int32_t position = batch.positions[t];
      for (int32_t h = 0; h < tile.heads; ++h) {
        const int64_t at =
            t * row_stride + int64_t{tile.kv_head * group + tile.first_head + h} * shape_.head_dim;
        args.q[args.rows] = q + at;
        args.out[args.rows] = out + at;
        args.begin[args.rows] = window > 0 ? std::max(0, position - window + 1) : 0;
        args.end[args.rows] = position + 1;
        ++args.rows;
      }
    }
    kernels.attend(args);
  });
}

}  // namespace wok
