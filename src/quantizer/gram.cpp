#include "quantizer/gram.h"

#include <algorithm>

#include "base/check.h"

namespace wok {
namespace {

constexpr int32_t kRowsAtOnce = 512;

}  // namespace

void Gram::add(const float* x, int32_t rows, FloatProduct& product, ComputePool& pool) {
  if (rows == 0) return;
  WOK_CHECK(!whole_, "a sum that is still being made");
  rows_ += rows;
  if (squares_only_) {
    sum_.resize(cols_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int32_t c = 0; c < cols_; ++c) sum_[c] += x[r * cols_ + c] * x[r * cols_ + c];
    }
    return;
  }
  if (sum_.empty()) sum_.resize(static_cast<size_t>(cols_) * cols_);
  std::vector<float> columns;  // [cols, rows]
  for (int32_t first = 0; first < rows; first += kRowsAtOnce) {
    const int32_t n = std::min(kRowsAtOnce, rows - first);
    columns.resize(static_cast<size_t>(cols_) * n);
    pool.run(cols_, [&](int32_t c, int32_t) {
      for (int32_t r = 0; r < n; ++r) {
        columns[static_cast<size_t>(c) * n + r] = x[static_cast<int64_t>(first + r) * cols_ + c];
      }
    });
    product.set(columns.data(), cols_, n);
    product.add(columns.data(), cols_, sum_.data(), /*upper=*/true);
  }
}

const std::vector<float>& Gram::sum() {
  WOK_CHECK(!squares_only_, "a whole sum");
  for (int32_t r = 0; r < cols_ && !whole_ && !sum_.empty(); ++r) {
    for (int32_t c = 0; c < r; ++c) {
      sum_[static_cast<size_t>(r) * cols_ + c] = sum_[static_cast<size_t>(c) * cols_ + r];
    }
  }
  whole_ = true;
  return sum_;
}

std::vector<float> Gram::importance() const {
  std::vector<float> out(cols_);
  for (int32_t c = 0; c < cols_ && rows_ > 0; ++c) {
    out[c] =
        sum_[squares_only_ ? c : static_cast<size_t>(c) * cols_ + c] / static_cast<float>(rows_);
  }
  return out;
}

double output_error(const std::vector<float>& d, int32_t rows, Gram& gram, FloatProduct& product) {
  const std::vector<float>& sum = gram.sum();
  if (sum.empty()) return 0;
  product.set(sum.data(), gram.cols(), gram.cols());
  std::vector<float> y(d.size());
  product.add(d.data(), rows, y.data());
  double error = 0;
  for (size_t i = 0; i < d.size(); ++i) error += double{d[i]} * y[i];
  return std::max(error, 0.0);
}

}  // namespace wok
