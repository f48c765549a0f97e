// AWQ (arXiv 2306.00978): columns whose inputs are large are scaled up before rounding, and the
// norm or the matrix that makes those inputs scaled down by as much; then the grids are narrowed
// where that costs less than it saves.
//
// The error of a choice is seen through the inputs' sum of products, so that a trial needs no run
// of the model: tr(D S Dᵀ), D the error of the weights. Importance is the root mean square of an
// input (the paper: its mean size).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quantizer/gram.h"
#include "quantizer/grouped_matrix.h"

namespace wok {

struct AwqMatrix {
  std::vector<float>* weights = nullptr;  // [rows, cols]
  int32_t rows = 0;
};

// The factors by which the columns of matrices that share their inputs are best multiplied, all 1
// where nothing is better. plain, best: the outputs' squared errors without and with them.
struct AwqScales {
  std::vector<float> by_column;
  double plain = 0, best = 0;
};
AwqScales find_awq_scales(std::span<const AwqMatrix> matrices, Gram& gram,
                          const GroupedOptions& options, FloatProduct& product, ComputePool& pool);

// Rounds w [rows, cols], each group on the grid that loses least of its own partial product with
// inputs that were divided by `scales` (empty: by nothing).
GroupedMatrix awq_round(const std::vector<float>& w, int32_t rows, Gram& gram,
                        const std::vector<float>& scales, const GroupedOptions& options,
                        ComputePool& pool);

}  // namespace wok
