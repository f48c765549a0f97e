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

void linear(const Compute& compute, const Activations& x, std::span<const Linear> ops);

}  // namespace wok
