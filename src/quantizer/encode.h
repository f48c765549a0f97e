// From floats to a weight format's blocks: the other direction of WeightFormat::dequantize.
#pragma once

#include <cstdint>

#include "quant/weight_format.h"

namespace wok {

// One row of `n` weights, whole blocks. importance [n]: how much an error of each column counts
// (the mean square of what it is multiplied by), or null: the same for all.
using EncodeFn = void (*)(const float* row, const float* importance, int64_t n, uint8_t* out);

// Null where wok reads the format but does not write it.
EncodeFn find_encoder(const WeightFormat& format);

namespace encoders {
#define WOK_ENCODERS(X) \
  X(f32)                \
  X(f16)                \
  X(bf16)               \
  X(q8_0)               \
  X(q4_0)               \
  X(q4_1)               \
  X(q5_0)               \
  X(q5_1)               \
  X(q2_k)               \
  X(q3_k)               \
  X(q4_k)               \
  X(q5_k)               \
  X(q6_k)               \
  X(iq4_nl)             \
  X(iq4_xs)

#define WOK_DECLARE_ENCODER(id) \
  void id(const float* row, const float* importance, int64_t n, uint8_t* out);
WOK_ENCODERS(WOK_DECLARE_ENCODER)
#undef WOK_DECLARE_ENCODER
}  // namespace encoders

// How much an error of each of n <= 256 weights counts: large ones more, and by importance.
void error_weights(const float* x, const float* importance, int n, float* w);

}  // namespace wok
