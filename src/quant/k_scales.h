// The 12 bytes of 6-bit scales and minima of Q4_K and Q5_K (sub-block j of 8).
#pragma once

#include <cstdint>

#include "quant/nibbles.h"

namespace wok {

struct KScale {
  uint8_t scale, min;
};

inline KScale k_scale(const uint8_t* b, int j) {
  if (j < 4) {
    return {static_cast<uint8_t>(b[j] & 63), static_cast<uint8_t>(b[j + 4] & 63)};
  }
  return {static_cast<uint8_t>((b[j + 4] & 15) | (b[j - 4] >> 6) << 4),
          static_cast<uint8_t>((b[j + 4] >> 4) | (b[j] >> 6) << 4)};
}

// Scales and minima of a super-block's 8 blocks, to be packed; row: its f16 factors and the 12
// bytes.
inline void set_k_scales(const uint8_t* row, PackBlock* out) {
  const float d = half_at(row), dmin = half_at(row + 2);
  for (int s = 0; s < 8; ++s) {
    const KScale k = k_scale(row + 4, s);
    out[s].scale = d;
    out[s].min = dmin;
    out[s].scale_code[0] = k.scale;
    out[s].min_code = k.min;
  }
}

}  // namespace wok
