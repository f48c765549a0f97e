// What every layer computes with: the kernels, the pool and each worker's scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/activations.h"

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

}  // namespace wok
