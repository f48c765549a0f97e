#include "quantizer/awq.h"

#include <algorithm>
#include <cmath>

namespace wok {
namespace {

constexpr int kRatios = 20;   // 0, 0.05 .. 0.95
constexpr int kShrinks = 10;  // 0, 5 % .. 45 %
constexpr float kLeast = 1e-4f;

// The mean over all rows of a weight's size, by the largest of its group.
std::vector<float> relative_sizes(std::span<const AwqMatrix> matrices, int32_t cols,
                                  int32_t group) {
  std::vector<double> sums(cols);
  int64_t rows = 0;
  for (const AwqMatrix& m : matrices) {
    rows += m.rows;
    for (int32_t r = 0; r < m.rows; ++r) {
      const float* row = m.weights->data() + static_cast<int64_t>(r) * cols;
      for (int32_t first = 0; first < cols; first += group) {
        const int32_t end = std::min(first + group, cols);
        float largest = 1e-12f;
        for (int32_t c = first; c < end; ++c) largest = std::max(largest, std::fabs(row[c]));
        for (int32_t c = first; c < end; ++c) sums[c] += std::fabs(row[c]) / largest;
      }
    }
  }
  std::vector<float> out(cols);
  for (int32_t c = 0; c < cols; ++c) {
    out[c] = static_cast<float>(sums[c] / static_cast<double>(std::max<int64_t>(rows, 1)));
  }
  return out;
}

std::vector<float> scales_of(const std::vector<float>& inputs, const std::vector<float>& weights,
                             float ratio) {
  std::vector<float> s(inputs.size());
  float low = INFINITY, high = 0;
  for (size_t c = 0; c < s.size(); ++c) {
    s[c] = std::pow(inputs[c], ratio) / (std::pow(weights[c], 1 - ratio) + kLeast);
    s[c] = std::max(s[c], kLeast);
    low = std::min(low, s[c]);
    high = std::max(high, s[c]);
  }
  const float middle = std::sqrt(low * high);
  for (float& x : s) x /= middle;
  return s;
}

// What rounding w with its columns multiplied by s loses, by columns as they were.
std::vector<float> lost_with(const AwqMatrix& m, const std::vector<float>& s,
                             const GroupedOptions& options, ComputePool& pool) {
  const auto cols = static_cast<int32_t>(s.size());
  std::vector<float> scaled(m.weights->size());
  pool.run(m.rows, [&](int32_t r, int32_t) {
    const size_t at = static_cast<size_t>(r) * cols;
    for (int32_t c = 0; c < cols; ++c) scaled[at + c] = (*m.weights)[at + c] * s[c];
  });
  const GroupedMatrix rounded =
      round_to_nearest(scaled.data(), m.rows, cols, nullptr, options, pool);
  std::vector<float> out = lost(scaled.data(), rounded, pool);
  pool.run(m.rows, [&](int32_t r, int32_t) {
    const size_t at = static_cast<size_t>(r) * cols;
    for (int32_t c = 0; c < cols; ++c) out[at + c] /= s[c];
  });
  return out;
}

}  // namespace

AwqScales find_awq_scales(std::span<const AwqMatrix> matrices, Gram& gram,
                          const GroupedOptions& options, FloatProduct& product, ComputePool& pool) {
  const int32_t cols = gram.cols();
  const std::vector<float> weights = relative_sizes(matrices, cols, options.group);
  std::vector<float> inputs = gram.importance();
  for (float& x : inputs) x = std::sqrt(std::max(x, 0.0f));
  const auto error_of = [&](const std::vector<float>& s) {
    double error = 0;
    for (const AwqMatrix& m : matrices) {
      error += output_error(lost_with(m, s, options, pool), m.rows, gram, product);
    }
    return error;
  };
  AwqScales out{.by_column = std::vector<float>(cols, 1.0f)};
  out.plain = out.best = error_of(out.by_column);
  for (int step = 0; step < kRatios; ++step) {
    std::vector<float> s =
        scales_of(inputs, weights, static_cast<float>(step) / static_cast<float>(kRatios));
    if (!std::all_of(s.begin(), s.end(), [](float x) { return std::isfinite(x) && x > 0; })) {
      continue;  // inputs that are 0 or as good as
    }
    const double error = error_of(s);
    if (error < out.best) {
      out.best = error;
      out.by_column = std::move(s);
    }
  }
  return out;
}

GroupedMatrix awq_round(const std::vector<float>& w, int32_t rows, Gram& gram,
                        const std::vector<float>& scales, const GroupedOptions& options,
                        ComputePool& pool) {
  const int32_t cols = gram.cols();
  GroupedMatrix out = round_to_nearest(w.data(), rows, cols, nullptr, options, pool);
  const std::vector<float>& sum = gram.sum();
  if (sum.empty()) return out;
  const int32_t groups = out.groups();
  pool.run(groups, [&](int32_t g, int32_t) {
    const int32_t first = g * options.group, n = std::min(options.group, cols - first);
    // The group's own part of the sum, of the inputs as these weights meet them.
    std::vector<float> part(static_cast<size_t>(n) * n), d(n);
    for (int32_t i = 0; i < n; ++i) {
      for (int32_t j = 0; j < n; ++j) {
        float value = sum[static_cast<size_t>(first + i) * cols + first + j];
        if (!scales.empty()) value /= scales[first + i] * scales[first + j];
        part[static_cast<size_t>(i) * n + j] = value;
      }
    }
    std::vector<float> x(n), shrunk(n);
    for (int32_t r = 0; r < rows; ++r) {
      const size_t at = static_cast<size_t>(r) * cols + first;
      std::copy_n(w.data() + at, n, x.data());
      float low = 0, high = 0;
      for (const float v : x) {
        low = std::min(low, v);
        high = std::max(high, v);
      }
      double least = INFINITY;
      Grid best;
      for (int step = 0; step < kShrinks; ++step) {
        const float keep = 1 - 0.05f * static_cast<float>(step);
        for (int32_t i = 0; i < n; ++i) shrunk[i] = std::clamp(x[i], low * keep, high * keep);
        const Grid grid = find_grid(shrunk.data(), nullptr, n, options);
        for (int32_t i = 0; i < n; ++i) {
          d[i] = x[i] - grid.scale * (static_cast<float>(nearest(x[i], grid, options.bits)) -
                                      static_cast<float>(grid.zero));
        }
        double error = 0;
        for (int32_t i = 0; i < n; ++i) {
          const float* row = part.data() + static_cast<size_t>(i) * n;
          float dot = 0;
          for (int32_t j = 0; j < n; ++j) dot += row[j] * d[j];
          error += double{dot} * d[i];
        }
        if (error < least) {
          least = error;
          best = grid;
        }
      }
      out.scales[static_cast<size_t>(r) * groups + g] = best.scale;
      out.zeros[static_cast<size_t>(r) * groups + g] = best.zero;
      for (int32_t i = 0; i < n; ++i) out.codes[at + i] = nearest(x[i], best, options.bits);
    }
  });
  return out;
}

}  // namespace wok
