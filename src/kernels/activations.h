// Owns activation rows in all the forms a table's matmul reads; sized once, filled every step.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace wok {

class ActivationBuffer {
 public:
  // ordered: some matrix takes the columns in an order of its own.
  void reserve(int32_t rows, int32_t cols, bool ordered = false) {
    // Columns of an int8 row are padded to whole blocks; float-only matrices may have others.
    const auto padded = static_cast<size_t>((cols + 31) / 32 * 32) * static_cast<size_t>(rows);
    f32_.resize(padded);
    if (ordered) ordered_.resize(padded);
    q_.resize(padded);
    scale_.resize(padded / 32);
    blocks_.resize(padded / 32);
  }

  // Says what is in it from now on: rows of `cols` columns, the first `exact_rows` of them in the
  // form that decode reads.
  void shape(const KernelTable& kernels, int32_t rows, int32_t cols, int32_t exact_rows) {
    if (kernels.quantize_group == nullptr) exact_rows = rows;
    view_ = {f32_.data(), q_.data(), blocks_.data(), scale_.data(), rows, cols, exact_rows};
  }
  const Activations& view() const { return view_; }
  float* row(int32_t r) { return f32_.data() + static_cast<int64_t>(r) * view_.cols; }

  // Fills the int8 form of one row, for matrices of this column order (null: none); nothing to do
  // where the columns are no whole blocks.
  void quantize_row(const KernelTable& kernels, int32_t r, const int32_t* column_order = nullptr) {
    if (kernels.panel_rows == 0 || view_.cols % kBlockColumns != 0) return;
    const float* from = row(r);
    if (column_order != nullptr) {
      float* to = ordered_.data() + static_cast<int64_t>(r) * view_.cols;
      for (int32_t c = 0; c < view_.cols; ++c) to[c] = from[column_order[c]];
      from = to;
    }
    quantize_columns(kernels, r, 0, view_.cols, from);
  }

  // The same of columns [column, column + n) of row r, which are at x; column % kGroupColumns == 0.
  void quantize_columns(const KernelTable& kernels, int32_t r, int32_t column, int32_t n,
                        const float* x) {
    const int32_t cols = view_.cols, e = view_.exact_rows;
    if (r >= e) {
      auto* codes = reinterpret_cast<uint8_t*>(q_.data()) + static_cast<int64_t>(r) * cols;
      float* scale = scale_.data() + static_cast<int64_t>(r) * (cols / kBlockColumns);
      kernels.quantize_group(x, n, codes + column, scale + column / kGroupColumns);
      return;
    }
    const int64_t at = static_cast<int64_t>(column / kBlockColumns) * e + r;
    kernels.quantize(x, n, e, q_.data() + at * kBlockColumns, blocks_.data() + at);
  }

 private:
  std::vector<float> f32_, ordered_, scale_;
  std::vector<int8_t> q_;
  std::vector<ActivationBlock> blocks_;
  Activations view_;
};

}  // namespace wok
