// Attention of whole sequences whose tokens see all others, before and behind. The keys and values
// of a sequence's head are laid out as the attention kernels want them, in a worker's own pages,
// used for all rows of that head and then forgotten.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/lazy_vector.h"
#include "layers/compute.h"

namespace wok {

struct TokenSpan {
  int32_t begin = 0, count = 0;  // rows of a flat list
};

class FullAttention {
 public:
  // scores are multiplied by `scale`; a sequence has at most max_tokens.
  void reserve(int32_t heads, int32_t head_dim, float scale, int32_t max_tokens, int32_t threads);

  // q, k, v, out: [tokens, heads, head_dim].
  void run(const Compute& compute, std::span<const TokenSpan> sequences, const float* q,
           const float* k, const float* v, float* out);

 private:
  void attend(const Compute& compute, const TokenSpan& sequence, int32_t head, uint8_t* pages,
              const float* q, const float* k, const float* v, float* out) const;

  int32_t heads_ = 0, head_dim_ = 0;
  float scale_ = 1;
  size_t page_bytes_ = 0, worker_bytes_ = 0;
  std::vector<int32_t> page_table_;  // 0, 1, 2 …
  LazyVector<uint8_t> pages_;        // [threads, worker_bytes_]
};

}  // namespace wok
