#include "quantizer/grouped_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace wok {
namespace {

constexpr int kSteps = 20;  // grids tried
constexpr float kNarrowest = 0.5f;
constexpr float kLeastScale = 6e-8f;  // the smallest f16

// The grid of these ends, its scale rounded to what a file can hold.
Grid grid_of(float low, float high, const GroupedOptions& o) {
  const auto top = static_cast<float>((1 << o.bits) - 1);
  Grid grid;
  float scale = 0;
  if (o.symmetric) {
    scale = 2 * std::max(-low, high) / top;
    grid.zero = static_cast<uint8_t>(1 << (o.bits - 1));
  } else {
    scale = (high - low) / top;
    grid.zero =
        scale > 0 ? static_cast<uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0f, top)) : 0;
  }
  grid.scale = half_to_float(float_to_half(std::max(scale, kLeastScale)));
  return grid;
}

}  // namespace

uint8_t nearest(float x, const Grid& grid, int32_t bits) {
  // Adding 1.5 * 2^23 leaves no bits for a fraction: rounds to even without a call.
  constexpr float kNoFraction = 12582912.0f;
  const auto top = static_cast<float>((1 << bits) - 1);
  const float code = std::clamp(x / grid.scale + static_cast<float>(grid.zero), 0.0f, top);
  return static_cast<uint8_t>(code + kNoFraction - kNoFraction);
}

Grid find_grid(const float* x, const float* importance, int32_t n, const GroupedOptions& options) {
  float low = 0, high = 0;
  for (int32_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  Grid best = grid_of(low, high, options);
  if (importance == nullptr) return best;
  double least = INFINITY;
  for (int step = 0; step <= kSteps; ++step) {
    const float shrink = 1 - (1 - kNarrowest) * static_cast<float>(step) / kSteps;
    const Grid grid = grid_of(low * shrink, high * shrink, options);
    double error = 0;
    for (int32_t i = 0; i < n && error < least; ++i) {
      const float back = grid.scale * (static_cast<float>(nearest(x[i], grid, options.bits)) -
                                       static_cast<float>(grid.zero));
      error += double{importance[i]} * (x[i] - back) * (x[i] - back);
    }
    if (error < least) {
      least = error;
      best = grid;
    }
  }
  return best;
}

GroupedMatrix round_to_nearest(const float* w, int32_t rows, int32_t cols, const float* importance,
                               const GroupedOptions& options, ComputePool& pool) {
  GroupedMatrix out{.rows = rows, .cols = cols, .options = options};
  const int32_t groups = out.groups();
  out.codes.resize(static_cast<size_t>(rows) * cols);
  out.scales.resize(static_cast<size_t>(rows) * groups);
  out.zeros.resize(out.scales.size());
  pool.run(rows, [&](int32_t r, int32_t) {
    const float* row = w + static_cast<int64_t>(r) * cols;
    for (int32_t g = 0; g < groups; ++g) {
      const int32_t first = g * options.group, n = std::min(options.group, cols - first);
      const Grid grid =
          find_grid(row + first, importance == nullptr ? nullptr : importance + first, n, options);
      out.scales[static_cast<size_t>(r) * groups + g] = grid.scale;
      out.zeros[static_cast<size_t>(r) * groups + g] = grid.zero;
      for (int32_t c = first; c < first + n; ++c) {
        out.codes[static_cast<size_t>(r) * cols + c] = nearest(row[c], grid, options.bits);
      }
    }
  });
  return out;
}

std::vector<float> lost(const float* w, const GroupedMatrix& matrix, ComputePool& pool) {
  std::vector<float> out(matrix.codes.size());
  pool.run(matrix.rows, [&](int32_t r, int32_t) {
    for (int32_t c = 0; c < matrix.cols; ++c) {
      const size_t i = static_cast<size_t>(r) * matrix.cols + c;
      out[i] = w[i] - matrix.at(r, c);
    }
  });
  return out;
}

}  // namespace wok
