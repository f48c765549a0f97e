#include "layers/attention.h"

#include <algorithm>

#include "base/check.h"

namespace wok {
namespace {

// Parts of split rows at most; rows beyond are computed whole.
constexpr int64_t kMaxPartFloats = int64_t{8} << 20;

int32_t splits_of(int32_t positions) {
  return (positions + kAttendSplit - 1) / kAttendSplit;
}

// Which page holds the end of a split: sequences with the same one have the same tokens so far,
// since pages are shared by whole prefixes only.
int32_t last_page(const SequenceSpan& span, int32_t split) {
  const int32_t end = std::min(span.kv_len, (split + 1) * kAttendSplit);
  return span.page_table[(end - 1) / kPageTokens];
}

}  // namespace

void Attention::reserve(const AttentionShape& shape, int32_t max_tokens, int32_t max_sequences) {
  shape_ = shape;
  const int32_t head_runs = (group() + kMaxAttendRows - 1) / kMaxAttendRows;
  const auto rows = static_cast<size_t>(max_tokens + max_sequences) * shape.kv_heads * head_runs;
  // A split tile has at least one row of `heads` in parts_.
  const auto parts = static_cast<size_t>(kMaxPartFloats / part_floats());
  tiles_.reserve(rows + parts);
  tile_tokens_.reserve(static_cast<size_t>(max_tokens) + parts);
  shorts_.reserve(max_sequences);
  token_parts_.resize(max_tokens);
  open_splits_ =
      std::vector<std::atomic<int32_t>>(static_cast<size_t>(max_tokens) * shape.kv_heads);
  parts_.resize(kMaxPartFloats);
}

// Tiles of the listed tokens for every KV head.
void Attention::add_tiles(const int32_t* page_table, int32_t first_token, int32_t tokens,
                          int32_t split) {
  const int32_t heads_per_tile = std::min(group(), kMaxAttendRows);
  const int32_t tokens_per_tile = kMaxAttendRows / heads_per_tile;
  for (int32_t t = 0; t < tokens; t += tokens_per_tile) {
    for (int32_t kv_head = 0; kv_head < shape_.kv_heads; ++kv_head) {
      for (int32_t h = 0; h < group(); h += heads_per_tile) {
        tiles_.push_back({page_table, kv_head, first_token + t,
                          std::min(tokens_per_tile, tokens - t), h,
                          std::min(heads_per_tile, group() - h), split});
      }
    }
  }
}

// True when the sequence's rows are to be computed split by split, and there is room for the parts.
bool Attention::make_short(const SequenceSpan& span, int32_t sequence) {
  const int32_t splits = splits_of(span.kv_len);
  const int64_t each = int64_t{shape_.heads} * splits * part_floats();
  if (splits == 1 || span.query_len * group() > kMaxAttendRows) return false;
  if (used_parts_ + span.query_len * each > kMaxPartFloats) return false;
  for (int32_t t = span.query_begin; t < span.query_begin + span.query_len; ++t) {
    token_parts_[t] = {used_parts_, splits};
    used_parts_ += each;
  }
  shorts_.push_back({sequence, splits});
  return true;
}

void Attention::plan(const Batch& batch) {
  tiles_.clear();
  tile_tokens_.clear();
  shorts_.clear();
  used_parts_ = 0;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const SequenceSpan& span = batch.sequences[s];
    if (make_short(span, static_cast<int32_t>(s))) continue;
    const auto first = static_cast<int32_t>(tile_tokens_.size());
    for (int32_t t = span.query_begin; t < span.query_begin + span.query_len; ++t) {
      tile_tokens_.push_back(t);
    }
    add_tiles(span.page_table, first, span.query_len, kWhole);
  }
  // The last tiles of a long prompt are the longest: those are claimed first.
  std::reverse(tiles_.begin(), tiles_.end());
  if (!shorts_.empty()) plan_splits(batch);
}

void Attention::plan_splits(const Batch& batch) {
  const auto span_of = [&](const Short& s) -> const SequenceSpan& {
    return batch.sequences[s.sequence];
  };
  // Sequences that share pages next to each other, for every split.
  std::sort(shorts_.begin(), shorts_.end(), [&](const Short& a, const Short& b) {
    for (int32_t i = 0; i < std::min(a.splits, b.splits); ++i) {
      const int32_t left = last_page(span_of(a), i), right = last_page(span_of(b), i);
      if (left != right) return left < right;
    }
    return a.splits != b.splits ? a.splits < b.splits : a.sequence < b.sequence;
  });
  int32_t most = 0;
  for (const Short& s : shorts_) most = std::max(most, s.splits);
  for (int32_t split = 0; split < most; ++split) {
    for (size_t i = 0; i < shorts_.size();) {
      if (shorts_[i].splits <= split) {
        ++i;
        continue;
      }
      const SequenceSpan& span = span_of(shorts_[i]);
      const int32_t page = last_page(span, split);
      const auto first = static_cast<int32_t>(tile_tokens_.size());
      for (; i < shorts_.size() && shorts_[i].splits > split; ++i) {
        const SequenceSpan& other = span_of(shorts_[i]);
        if (last_page(other, split) != page) break;
        for (int32_t t = 0; t < other.query_len; ++t) {
          tile_tokens_.push_back(other.query_begin + t);
        }
      }
      add_tiles(span.page_table, first, static_cast<int32_t>(tile_tokens_.size()) - first, split);
    }
  }
}

float* Attention::part_of(int32_t token, int32_t head, int32_t split) {
  const TokenParts& parts = token_parts_[token];
  return parts_.data() + parts.first + (int64_t{head} * parts.splits + split) * part_floats();
}

void Attention::attend(const Tile& tile, const Compute& compute, const Batch& batch,
                       const PageMemory& memory, const Layer& layer, const float* q, float* out) {
  const KvKernels& kernels = compute.kernels->*memory.shape().format->kernels;
  AttendArgs args;
  args.kv = memory.view(layer.index, tile.kv_head);
  args.page_table = tile.page_table;
  args.head_dim = shape_.head_dim;
  args.scale = shape_.scale;
  args.cap = shape_.cap;
  float sinks[kMaxAttendRows];
  if (layer.sinks != nullptr) args.sinks = sinks;
  for (int32_t i = 0; i < tile.tokens; ++i) {
    const int32_t token = tile_tokens_[tile.first_token + i];
    const int32_t position = batch.positions[token];
    for (int32_t h = 0; h < tile.heads; ++h) {
      const int32_t head = tile.kv_head * group() + tile.first_head + h;
      const int64_t at = (int64_t{token} * shape_.heads + head) * shape_.head_dim;
      args.q[args.rows] = q + at;
      args.out[args.rows] = tile.split == kWhole ? out + at : part_of(token, head, tile.split);
      args.begin[args.rows] = layer.window > 0 ? std::max(0, position - layer.window + 1) : 0;
      args.end[args.rows] = position + 1;
      if (layer.sinks != nullptr) sinks[args.rows] = layer.sinks[head];
      ++args.rows;
    }
  }
  if (tile.split == kWhole) {
    kernels.attend(args);
  } else {
    kernels.attend_split(args, tile.split);
    finish_rows(tile, compute, layer.sinks, out);
  }
}

void Attention::finish_rows(const Tile& tile, const Compute& compute, const float* sinks,
                            float* out) {
  for (int32_t i = 0; i < tile.tokens; ++i) {
    const int32_t token = tile_tokens_[tile.first_token + i];
    std::atomic<int32_t>& open = open_splits_[int64_t{token} * shape_.kv_heads + tile.kv_head];
    if (open.fetch_sub(tile.heads, std::memory_order_acq_rel) > tile.heads) continue;
    const int32_t splits = token_parts_[token].splits;
    for (int32_t h = 0; h < group(); ++h) {
      const int32_t head = tile.kv_head * group() + h;
      compute.kernels->combine_splits(
          part_of(token, head, 0), part_floats(), splits, shape_.head_dim,
          sinks != nullptr ? sinks + head : nullptr,
          out + (int64_t{token} * shape_.heads + head) * shape_.head_dim);
    }
  }
}

void Attention::run(const Compute& compute, const Batch& batch, const PageMemory& memory,
                    const Layer& layer, const float* q, float* out) {
  for (const Short& s : shorts_) {
    const SequenceSpan& span = batch.sequences[s.sequence];
    for (int32_t t = span.query_begin; t < span.query_begin + span.query_len; ++t) {
      for (int32_t h = 0; h < shape_.kv_heads; ++h) {
        open_splits_[int64_t{t} * shape_.kv_heads + h].store(s.splits * group(),
                                                             std::memory_order_relaxed);
      }
    }
  }
  compute.pool->run(static_cast<int32_t>(tiles_.size()), [&](int32_t task, int32_t) {
    attend(tiles_[task], compute, batch, memory, layer, q, out);
  });
}

}  // namespace wok
