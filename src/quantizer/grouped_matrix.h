// A matrix in the integers of GPTQ, AWQ and compressed-tensors: groups of columns of a row share a
// scale and a zero point; weight = scale * (code - zero).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace wok {

struct GroupedOptions {
  int32_t bits = 4;       // 2, 3, 4 or 8
  int32_t group = 128;    // columns; the last one may be shorter
  bool symmetric = true;  // the zero point is the middle code
};

struct GroupedMatrix {
  int32_t rows = 0, cols = 0;
  GroupedOptions options = {};
  std::vector<uint8_t> codes = {};     // [rows, cols]
  std::vector<float> scales = {};      // [rows, groups]; each is an f16
  std::vector<uint8_t> zeros = {};     // [rows, groups]
  std::vector<int32_t> group_of = {};  // [cols], or empty: column / group

  int32_t groups() const { return (cols + options.group - 1) / options.group; }
  int32_t group_at(int32_t c) const { return group_of.empty() ? c / options.group : group_of[c]; }
  float at(int32_t r, int32_t c) const {
    const size_t g = static_cast<size_t>(r) * groups() + group_at(c);
    return scales[g] * (static_cast<float>(codes[static_cast<size_t>(r) * cols + c]) -
                        static_cast<float>(zeros[g]));
  }
};

struct Grid {
  float scale = 0;
  uint8_t zero = 0;
};

// The grid of n weights that holds them all, or, where `importance` is given, one up to half as
// wide whose error counts least: a column's counts importance times its square.
Grid find_grid(const float* x, const float* importance, int32_t n, const GroupedOptions& options);

// The nearest code.
uint8_t nearest(float x, const Grid& grid, int32_t bits);

// Rounds w [rows, cols]. importance [cols]: as find_grid; null: no search.
GroupedMatrix round_to_nearest(const float* w, int32_t rows, int32_t cols, const float* importance,
                               const GroupedOptions& options, ComputePool& pool);

// w - what the codes mean.
std::vector<float> lost(const float* w, const GroupedMatrix& matrix, ComputePool& pool);

}  // namespace wok
