// GPTQ (arXiv 2210.17323): columns are rounded one after the other, and what each loses is made up
// for in those that follow, as far as the inputs' correlations allow.
//
// Groups' grids are found beforehand, from the weights as they were. Columns are taken from the
// most important on; the codes then go back to their places, so that groups stay neighbours and
// inference needs no order of columns. With act_order the groups themselves are made of columns of
// like importance, which loses less and which a reader has to know (g_idx).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quantizer/gram.h"
#include "quantizer/grouped_matrix.h"

namespace wok {

// What the solver needs of a site's inputs; matrices that share inputs share it.
struct GptqFactor {
  int32_t cols = 0;
  std::vector<int32_t> order = {};     // of columns, the most important first
  std::vector<float> importance = {};  // mean squares, of the columns in their own order
  std::vector<float> upper = {};       // [cols, cols], ordered: U of inverse(H) = Uᵀ U
  std::vector<uint8_t> dead = {};      // columns that were always 0
  float damping = 0;                   // part of the mean diagonal that was added at last
  std::string problem = {};            // not "": why there is none; round to nearest then
};

// damping: the share of the mean diagonal that is added to all of it at first. Where the sum is
// still not positive definite it grows up to the whole. Seen by fewer than `least_rows` rows: a
// problem.
GptqFactor make_gptq_factor(Gram& gram, float damping, int64_t least_rows);

// w [rows, cols]. The factor has no problem.
GroupedMatrix gptq(const float* w, int32_t rows, const GptqFactor& factor,
                   const GroupedOptions& options, bool act_order, ComputePool& pool);

}  // namespace wok
