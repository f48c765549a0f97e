// The 12 bytes of 6-bit scales and minima of Q4_K and Q5_K (sub-block j of 8).
#pragma once

#include <cstdint>

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

}  // namespace wok
