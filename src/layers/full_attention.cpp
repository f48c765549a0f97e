#include "layers/full_attention.h"

#include <algorithm>
#include <numeric>

namespace wok {

void FullAttention::reserve(int32_t heads, int32_t head_dim, float scale, int32_t max_tokens,
                            int32_t threads) {
  constexpr size_t kElementBytes = 2;
  heads_ = heads;
  head_dim_ = head_dim;
  scale_ = scale;
  page_table_.resize((max_tokens + kPageTokens - 1) / kPageTokens);
  std::iota(page_table_.begin(), page_table_.end(), 0);
  page_bytes_ = 2 * kElementBytes * head_dim * kPageTokens;
  worker_bytes_ = page_bytes_ * page_table_.size();
  pages_.resize(worker_bytes_ * threads + 64);
}

void FullAttention::run(const Compute& compute, std::span<const TokenSpan> sequences,
                        const float* q, const float* k, const float* v, float* out) {
  uint8_t* pages = pages_.data() + (64 - reinterpret_cast<uintptr_t>(pages_.data()) % 64) % 64;
  const auto tasks = static_cast<int32_t>(sequences.size()) * heads_;
  compute.pool->run(tasks, [&](int32_t task, int32_t worker) {
    attend(compute, sequences[task / heads_], task % heads_,
           pages + static_cast<size_t>(worker) * worker_bytes_, q, k, v, out);
  });
}

void FullAttention::attend(const Compute& compute, const TokenSpan& sequence, int32_t head,
                           uint8_t* pages, const float* q, const float* k, const float* v,
                           float* out) const {
  const KvKernels& kernels = compute.kernels->kv_f16;
  const int64_t stride = int64_t{heads_} * head_dim_;
  const int64_t first = sequence.begin * stride + int64_t{head} * head_dim_;
  AttendArgs args;
  args.kv = {pages, page_bytes_, 0, page_bytes_ / 2};
  args.page_table = page_table_.data();
  args.head_dim = head_dim_;
  args.scale = scale_;
  for (int32_t t = 0; t < sequence.count; ++t) {
    const int64_t at = first + t * stride;
    kernels.store(args.kv, args.page_table, t, head_dim_, k + at, v + at);
  }
  for (int32_t begin = 0; begin < sequence.count; begin += kMaxAttendRows) {
    args.rows = std::min(kMaxAttendRows, sequence.count - begin);
    for (int32_t r = 0; r < args.rows; ++r) {
      const int64_t at = first + (begin + r) * stride;
      args.q[r] = q + at;
      args.out[r] = out + at;
      args.begin[r] = 0;
      args.end[r] = sequence.count;
    }
    kernels.attend(args);
  }
}

}  // namespace wok
