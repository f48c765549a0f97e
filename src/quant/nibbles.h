// Shared by the formats with blocks of 32 in "split halves": byte j holds column j in its low and
// column j + 16 in its high nibble.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "quant/weight_format.h"

namespace wok {

inline void split_halves(const uint8_t* bytes, uint8_t* code) {
  for (int j = 0; j < 16; ++j) {
    code[j] = bytes[j] & 15;
    code[j + 16] = bytes[j] >> 4;
  }
}

// Bit j of the little-endian word is bit 4 of column j.
inline void add_fifth_bits(const uint8_t* bytes, uint8_t* code) {
  const auto bits = load_unaligned<uint32_t>(bytes);
  for (int j = 0; j < 32; ++j) code[j] |= static_cast<uint8_t>(((bits >> j) & 1) << 4);
}

inline float half_at(const uint8_t* p) {
  return half_to_float(load_unaligned<uint16_t>(p));
}

}  // namespace wok
