// Cutting rows into tiles of a height known at compile time, and writing a tile's results.
#pragma once

#include <cstdint>

#include "kernels/body/elementwise.h"
#include "kernels/body/unroll.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

template <int kRows, class Run>
inline void last_row_tile(int rest, int32_t first, const Run& run) {
  if constexpr (kRows > 0) {
    if (rest == kRows) return run.template operator()<kRows>(first);
    last_row_tile<kRows - 1>(rest, first, run);
  }
}

// Calls run.template operator()<n>(first) over rows [begin, end): kMost at a time, then what is
// left.
template <int kMost, class Run>
inline void for_row_tiles(int32_t begin, int32_t end, const Run& run) {
  int32_t first = begin;
  for (; first + kMost <= end; first += kMost) run.template operator()<kMost>(first);
  last_row_tile<kMost - 1>(end - first, first, run);
}

// The same in as few tiles, but of about the same height: a low one leaves multipliers idle.
template <int kMost, class Run>
inline void for_even_tiles(int32_t begin, int32_t end, const Run& run) {
  for (int32_t tiles = (end - begin + kMost - 1) / kMost; tiles > 0; --tiles) {
    const int32_t height = (end - begin + tiles - 1) / tiles;
    last_row_tile<kMost>(height, begin, run);
    begin += height;
  }
}

WOK_INLINE inline void write_out(const MatmulArgs& args, int32_t panel, int32_t row, Float value) {
  const int32_t first = panel * kW;
  const int32_t valid = args.weights->rows - first < kW ? args.weights->rows - first : kW;
  float* y = args.y + (row - args.y_row) * args.y_stride + (panel - args.y_panel) * kW;
  if (valid == kW) {
    Simd::store(y, args.accumulate ? Simd::add(value, Simd::load(y)) : value);
    return;
  }
  float lanes[kW];
  Simd::store(lanes, value);
  for (int32_t i = 0; i < valid; ++i) y[i] = args.accumulate ? lanes[i] + y[i] : lanes[i];
}

}  // namespace
}  // namespace wok
