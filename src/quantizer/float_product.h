// Products of float matrices by the kernels that inference has: for sums of squares and for errors
// seen through them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace wok {

class FloatProduct {
 public:
  FloatProduct(const KernelTable& kernels, ComputePool& pool) : kernels_(kernels), pool_(pool) {}

  // The right factor, b [n, k]; it is kept until the next call.
  void set(const float* b, int32_t n, int32_t k);

  // y [m, n] += a [m, k] bᵀ. upper: columns c >= the row only, give or take a tile.
  void add(const float* a, int32_t m, float* y, bool upper = false);

 private:
  const KernelTable& kernels_;
  ComputePool& pool_;
  const float* rows_ = nullptr;
  int32_t n_ = 0, k_ = 0;
  std::vector<uint8_t> packed_, scratch_;
};

}  // namespace wok
