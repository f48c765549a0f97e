// The first half of a gated MLP: activation(W_gate x) * (W_up x), quantized for W_down.
//
// Prompt rows never write gate and up to memory: a task computes kGroupColumns columns of both for
// a block of rows, which is just one group of W_down's activations, while they are in its cache.
#pragma once

#include "layers/compute.h"

namespace wok {

struct GatedLinear {
  const Matrix* gate = nullptr;
  const Matrix* up = nullptr;
  const Matrix* down = nullptr;  // says in which form the result will be read
  void (*activate)(const float* gate, const float* up, int32_t n, float* y) = nullptr;
  float* gate_rows = nullptr;  // [x.rows, gate->rows], used where the rows are few
  float* up_rows = nullptr;
  bool keep_rows = false;  // the result is wanted as floats, too
};

// `out` has its shape already: x.rows rows of gate->rows columns, as many exact ones as x.
void gated_linear(const Compute& compute, const Activations& x, const GatedLinear& op,
                  ActivationBuffer& out);

// Bytes of a worker's scratch for matrices of at most `cols` columns.
size_t linear_scratch_bytes(int32_t cols);

}  // namespace wok
