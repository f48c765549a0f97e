// What every layer computes with: the kernels, the pool and each worker's scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace wok {

struct Compute {
  const KernelTable* kernels = nullptr;
  ComputePool* pool = nullptr;
  uint8_t* scratch = nullptr;  // [threads, scratch_stride]
  size_t scratch_stride = 0;

  uint8_t* worker_scratch(int32_t worker) const { return scratch + worker * scratch_stride; }

  // Calls fn(row) for rows [0, n), a few rows a task.
  template <class Fn>
  void for_rows(int32_t n, const Fn& fn) const {
    constexpr int32_t kRowsPerTask = 4;
    pool->run((n + kRowsPerTask - 1) / kRowsPerTask, [&](int32_t task, int32_t) {
      const int32_t end = std::min(n, (task + 1) * kRowsPerTask);
      for (int32_t row = task * kRowsPerTask; row < end; ++row) fn(row);
    });
  }
};

// Activation rows with room for their int8 form; sized once, at load.
class ActivationBuffer {
 public:
  void reserve(int32_t rows, int32_t cols) {
    // Columns of an int8 row are padded to whole blocks; float-only matrices may have others.
    const auto padded = static_cast<size_t>((cols + 31) / 32 * 32) * static_cast<size_t>(rows);
    f32_.resize(padded);
    q_.resize(padded);
    scale_.resize(padded / 32);
    half_sum_.resize(padded / 16);
    sum_.resize(padded / 32);
  }
  Activations view(int32_t rows, int32_t cols) {
    return {f32_.data(), q_.data(), scale_.data(), half_sum_.data(), sum_.data(), rows, cols};
  }
  float* row(int32_t r, int32_t cols) { return f32_.data() + static_cast<int64_t>(r) * cols; }
  // Fills the int8 form of one row; nothing to do where the columns are no whole blocks.
  void quantize_row(const KernelTable& kernels, int32_t r, int32_t cols) {
    if (kernels.panel_rows == 0 || cols % 32 != 0) return;
    const int64_t at = static_cast<int64_t>(r) * cols;
    kernels.quantize(f32_.data() + at, cols, q_.data() + at, scale_.data() + at / 32,
                     half_sum_.data() + at / 16, sum_.data() + at / 32);
  }

 private:
  std::vector<float> f32_, scale_, half_sum_, sum_;
  std::vector<int8_t> q_;
};

}  // namespace wok
