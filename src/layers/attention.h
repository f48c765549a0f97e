// Attention of a batch over paged keys and values: one list of tiles for all its sequences, claimed
// by the pool's threads one by one.
#pragma once

#include <vector>

#include "kv/page_memory.h"
#include "layers/batch.h"
#include "layers/compute.h"

namespace wok {

struct AttentionShape {
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 1;
};

class Attention {
 public:
  void reserve(const AttentionShape& shape, int32_t max_tokens, int32_t max_sequences);

  // Cuts the batch into tiles of query rows that share a KV head; once a step.
  void plan(const Batch& batch);

  // q, out: [tokens, heads, head_dim]. window: positions a token sees, itself included; 0: all.
  void run(const Compute& compute, const Batch& batch, const PageMemory& memory, int32_t layer,
           int32_t window, const float* q, float* out) const;

 private:
  struct Tile {
    int32_t sequence, kv_head;
    int32_t first_token, tokens;  // of the flat list
    int32_t first_head, heads;    // within the GQA group
  };
  AttentionShape shape_;
  std::vector<Tile> tiles_;
};

}  // namespace wok
