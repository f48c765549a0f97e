// Attention of a batch over paged keys and values: one list of tiles for all its sequences, claimed
// by the pool's threads one by one. Prompt chunks take all positions of their rows in one tile.
// Short sequences (decodes, drafts) take a tile a split of positions: a long context keeps every
// thread busy, and sequences that share the pages of a split read them once. Either way a row's
// result is the same, bit for bit (kernels.h, AttendArgs).
#pragma once

#include <atomic>
#include <vector>

#include "base/lazy_vector.h"
#include "kv/page_memory.h"
#include "layers/batch.h"
#include "layers/compute.h"

namespace wok {

struct AttentionShape {
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 1;
  float cap = 0;  // of the scores (kernels.h); 0: none
};

class Attention {
 public:
  void reserve(const AttentionShape& shape, int32_t max_tokens, int32_t max_sequences);

  // Cuts the batch into tiles of query rows that share a KV head; once a step.
  void plan(const Batch& batch);

  // What sets one layer's attention apart.
  struct Layer {
    int32_t index = 0;
    int32_t window = 0;            // positions a token sees, itself included; 0: all
    const float* sinks = nullptr;  // [heads], of kernels.h; null: none
  };
  // q, out: [tokens, heads, head_dim].
  void run(const Compute& compute, const Batch& batch, const PageMemory& memory, const Layer& layer,
           const float* q, float* out);

 private:
  static constexpr int32_t kWhole = -1;
  // Rows of the tokens listed at tile_tokens_[first_token, first_token + tokens) and of some heads
  // of a GQA group.
  struct Tile {
    const int32_t* page_table;
    int32_t kv_head;
    int32_t first_token, tokens;
    int32_t first_head, heads;
    int32_t split;  // kWhole: all positions
  };

  // A sequence whose rows are computed split by split.
  struct Short {
    int32_t sequence, splits;
  };

  int32_t group() const { return shape_.heads / shape_.kv_heads; }
  int64_t part_floats() const { return int64_t{split_floats(shape_.head_dim)}; }
  void add_tiles(const int32_t* page_table, int32_t first_token, int32_t tokens, int32_t split);
  bool make_short(const SequenceSpan& span, int32_t sequence);
  void plan_splits(const Batch& batch);
  float* part_of(int32_t token, int32_t head, int32_t split);
  void attend(const Tile& tile, const Compute& compute, const Batch& batch,
              const PageMemory& memory, const Layer& layer, const float* q, float* out);
  void finish_rows(const Tile& tile, const Compute& compute, const float* sinks, float* out);

  AttentionShape shape_;
  std::vector<Tile> tiles_;
  std::vector<int32_t> tile_tokens_;
  std::vector<Short> shorts_;
  struct TokenParts {
    int64_t first = 0;  // its parts: [heads, splits, split_floats]
    int32_t splits = 0;
  };
  std::vector<TokenParts> token_parts_;  // of the tokens of shorts_
  // Splits of a token and KV head that are not done yet; whoever brings it to 0 combines them.
  std::vector<std::atomic<int32_t>> open_splits_;
  LazyVector<float> parts_;
  int64_t used_parts_ = 0;
};

}  // namespace wok
