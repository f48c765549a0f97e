// What calibration keeps of a matrix's inputs x: the sum of x xᵀ over all tokens. GPTQ's Hessian
// and AWQ's error are made of it, and its diagonal is the importance matrix of k-quants: one pass
// over the text serves all three.
#pragma once

#include <cstdint>
#include <vector>

#include "quantizer/float_product.h"

namespace wok {

class Gram {
 public:
  // squares_only: the diagonal is all that is kept, and sum() is not to be asked for.
  explicit Gram(int32_t cols = 0, bool squares_only = false)
      : cols_(cols), squares_only_(squares_only) {}

  // Adds x [rows, cols]. `product` is used, not kept. Memory: cols² floats from the first row on.
  void add(const float* x, int32_t rows, FloatProduct& product, ComputePool& pool);

  int32_t cols() const { return cols_; }
  int64_t rows() const { return rows_; }  // that were added
  // [cols, cols], symmetric; empty where no row was added. Not to be added to afterwards.
  const std::vector<float>& sum();
  // Mean squares of the columns.
  std::vector<float> importance() const;

 private:
  int32_t cols_;
  bool squares_only_;
  int64_t rows_ = 0;
  bool whole_ = false;      // the lower half is filled
  std::vector<float> sum_;  // its upper half; the diagonal alone with squares_only
};

// tr(D S Dᵀ): the squared error of the outputs when the weights are off by d [rows, cols].
double output_error(const std::vector<float>& d, int32_t rows, Gram& gram, FloatProduct& product);

}  // namespace wok
