#include "quantizer/gptq.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace wok {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

constexpr int32_t kBlock = 128;      // columns whose errors go to the rest of the row at once
constexpr int32_t kRowsAtOnce = 32;  // of a task: they read the factor together

// The damped sum with its columns in reverse: its lower factor is the upper one of the inverse,
// read backwards, so that one factorization and one triangular inverse are enough.
RowMajor reversed_hessian(const std::vector<float>& sum, const GptqFactor& f, float damp) {
  RowMajor h(f.cols, f.cols);
  for (int32_t r = 0; r < f.cols; ++r) {
    const float* from = sum.data() + static_cast<size_t>(f.order[f.cols - 1 - r]) * f.cols;
    for (int32_t c = 0; c < f.cols; ++c) h(r, c) = from[f.order[f.cols - 1 - c]];
    if (f.dead[f.order[f.cols - 1 - r]] != 0) h(r, r) = 1;
    h(r, r) += damp;
  }
  return h;
}

// Rows [begin, end): error by error.
class RowsTask {
 public:
  RowsTask(const float* w, const GptqFactor& f, int32_t begin, int32_t end, GroupedMatrix& out)
      : f_(f), begin_(begin), rows_(end - begin), out_(out), x_(rows_, f.cols) {
    for (int32_t r = 0; r < rows_; ++r) {
      const float* row = w + static_cast<int64_t>(begin + r) * f.cols;
      for (int32_t p = 0; p < f.cols; ++p) {
        x_(r, p) = f.dead[f.order[p]] != 0 ? 0 : row[f.order[p]];
      }
    }
  }

  void run() {
    const ConstMap upper(f_.upper.data(), f_.cols, f_.cols);
    RowMajor errors(rows_, kBlock);
    for (int32_t first = 0; first < f_.cols; first += kBlock) {
      const int32_t n = std::min(kBlock, f_.cols - first);
      for (int32_t i = 0; i < n; ++i) {
        const int32_t p = first + i;
        const float* u = f_.upper.data() + static_cast<size_t>(p) * f_.cols;
        for (int32_t r = 0; r < rows_; ++r) {
          const float error = (x_(r, p) - round(r, p)) / u[p];
          errors(r, i) = error;
          float* row = x_.data() + static_cast<int64_t>(r) * f_.cols;
          for (int32_t k = p + 1; k < first + n; ++k) row[k] -= error * u[k];
        }
      }
      const int32_t rest = f_.cols - first - n;
      if (rest == 0) break;
      x_.rightCols(rest).noalias() -= errors.leftCols(n) * upper.block(first, first + n, n, rest);
    }
  }

 private:
  // Chooses the code of row r's column at place p; what it means.
  float round(int32_t r, int32_t p) {
    const int32_t c = f_.order[p];
    const size_t g = static_cast<size_t>(begin_ + r) * out_.groups() + out_.group_at(c);
    const Grid grid{out_.scales[g], out_.zeros[g]};
    const uint8_t code = nearest(x_(r, p), grid, out_.options.bits);
    out_.codes[static_cast<size_t>(begin_ + r) * f_.cols + c] = code;
    return grid.scale * (static_cast<float>(code) - static_cast<float>(grid.zero));
  }

  const GptqFactor& f_;
  int32_t begin_, rows_;
  GroupedMatrix& out_;
  RowMajor x_;  // the weights that are left to round, in the factor's order
};

}  // namespace

GptqFactor make_gptq_factor(Gram& gram, float damping, int64_t least_rows) {
  GptqFactor f{.cols = gram.cols(), .importance = gram.importance()};
  if (gram.rows() < least_rows) {
    f.problem = fmt::format("{} tokens of the calibration text reached it", gram.rows());
    return f;
  }
  const std::vector<float>& sum = gram.sum();
  double mean = 0;
  f.dead.resize(f.cols);
  for (int32_t c = 0; c < f.cols; ++c) {
    const float diagonal = sum[static_cast<size_t>(c) * f.cols + c];
    if (!std::isfinite(diagonal)) {
      f.problem = fmt::format("its input {} is not finite on the calibration text", c);
      return f;
    }
    f.dead[c] = diagonal <= 0;
    mean += diagonal / static_cast<double>(f.cols);
  }
  f.order.resize(f.cols);
  std::iota(f.order.begin(), f.order.end(), 0);
  std::stable_sort(f.order.begin(), f.order.end(),
                   [&](int32_t a, int32_t b) { return f.importance[a] > f.importance[b]; });
  for (f.damping = damping; f.damping <= 1; f.damping = std::max(2 * f.damping, 0.01f)) {
    const RowMajor h = reversed_hessian(sum, f, f.damping * static_cast<float>(mean));
    const Eigen::LLT<RowMajor> factor(h);
    if (factor.info() != Eigen::Success) continue;
    RowMajor inverse = RowMajor::Identity(f.cols, f.cols);
    factor.matrixL().solveInPlace(inverse);
    if (!inverse.allFinite()) continue;
    f.upper.resize(sum.size());
    Eigen::Map<RowMajor>(f.upper.data(), f.cols, f.cols) = inverse.reverse();
    return f;
  }
  f.problem = "the sum of its inputs' products is not positive definite";
  return f;
}

GroupedMatrix gptq(const float* w, int32_t rows, const GptqFactor& factor,
                   const GroupedOptions& options, bool act_order, ComputePool& pool) {
  const int32_t cols = factor.cols;
  GroupedMatrix out;
  if (!act_order) {
    out = round_to_nearest(w, rows, cols, factor.importance.data(), options, pool);
  } else {
    // The grids of columns in the factor's order.
    std::vector<float> ordered(static_cast<size_t>(rows) * cols), importance(cols);
    for (int32_t p = 0; p < cols; ++p) importance[p] = factor.importance[factor.order[p]];
    pool.run(rows, [&](int32_t r, int32_t) {
      const size_t at = static_cast<size_t>(r) * cols;
      for (int32_t p = 0; p < cols; ++p) ordered[at + p] = w[at + factor.order[p]];
    });
    out = round_to_nearest(ordered.data(), rows, cols, importance.data(), options, pool);
    out.group_of.resize(cols);
    for (int32_t p = 0; p < cols; ++p) out.group_of[factor.order[p]] = p / options.group;
  }
  const int32_t tasks = (rows + kRowsAtOnce - 1) / kRowsAtOnce;
  pool.run(tasks, [&](int32_t task, int32_t) {
    const int32_t begin = task * kRowsAtOnce;
    RowsTask(w, factor, begin, std::min(begin + kRowsAtOnce, rows), out).run();
  });
  return out;
}

}  // namespace wok
