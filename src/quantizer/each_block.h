// A row, block by block, with how much an error of each weight counts.
#pragma once

#include "quantizer/encode.h"

namespace wok {

// Calls fn(x, w, out) for each block of kWeights.
template <int kWeights, class Fn>
void each_block(const float* row, const float* importance, int64_t n, int bytes, uint8_t* out,
                const Fn& fn) {
  float w[kWeights];
  for (int64_t b = 0; b < n / kWeights; ++b, row += kWeights, out += bytes) {
    error_weights(row, importance == nullptr ? nullptr : importance + b * kWeights, kWeights, w);
    fn(row, w, out);
  }
}

}  // namespace wok
