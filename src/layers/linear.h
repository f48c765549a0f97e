// Matrices times one set of activations, in one parallel region: QKV and gate+up are one call.
#pragma once

#include <span>

#include "layers/compute.h"

namespace wok {

struct Linear {
  const Matrix* weights = nullptr;
  float* y = nullptr;       // [x.rows, weights->rows]
  bool accumulate = false;  // y += (residual)
};

// Panels of a matrix that a task takes which streams them for a few rows.
int32_t panels_per_task(const Matrix& w);

void linear(const Compute& compute, const Activations& x, std::span<const Linear> ops);

}  // namespace wok
