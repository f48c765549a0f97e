// The grids of the IQ formats: a code names a row of 8 (or 4) small whole numbers, the points of a
// lattice that weights were rounded to. Data of the formats as ggml defines them (llama.cpp, MIT),
// taken from the `gguf` package 0.19.0 and packed: 2 bits a number in rows of 8, 3 bits in rows
// of 4, the first in the lowest bits.
#pragma once

#include <cstdint>

namespace wok {

extern const uint16_t kGridIq2Xxs[256];
extern const uint16_t kGridIq2Xs[512];
extern const uint16_t kGridIq2S[1024];
extern const uint16_t kGridIq1[2048];
extern const uint16_t kGridIq3Xxs[256];
extern const uint16_t kGridIq3S[512];

// Number i of a row of 8, and of a row of 4.
inline uint8_t grid_of_8(uint16_t row, int i) {
  return row >> (2 * i) & 3;
}
inline uint8_t grid_of_4(uint16_t row, int i) {
  return row >> (3 * i) & 7;
}

// Signs of 8 weights in 7 bits: the eighth is set when an odd number of them is.
inline uint8_t signs_of_7(uint32_t bits) {
  bits &= 127;
  return static_cast<uint8_t>(bits | (__builtin_popcount(bits) & 1) << 7);
}

}  // namespace wok
