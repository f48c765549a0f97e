// Shared by the formats with blocks of 32 in "split halves": byte j holds column j in its low and
// column j + 16 in its high nibble.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "quant/weight_format.h"

namespace wok {

// Through a copy, so that the compiler sees that reading and writing do not overlap.
inline void split_halves(const uint8_t* bytes, uint8_t* code) {
  uint8_t from[16];
  std::memcpy(from, bytes, sizeof(from));
  for (int j = 0; j < 16; ++j) {
    code[j] = from[j] & 15;
    code[j + 16] = from[j] >> 4;
  }
}

// Bit j of the little-endian word is bit 4 of column j. Eight at a time: a byte in every place of a
// word, its bit k left in place k, and any bit moved to bit 4.
inline void add_fifth_bits(const uint8_t* bytes, uint8_t* code) {
  for (int eight = 0; eight < 4; ++eight) {
    const uint64_t one_bit = bytes[eight] * 0x0101010101010101u & 0x8040201008040201u;
    const uint64_t fifth = ((one_bit + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u) >> 3;
    const uint64_t sum = load_unaligned<uint64_t>(code + 8 * eight) | fifth;
    std::memcpy(code + 8 * eight, &sum, sizeof(sum));
  }
}

inline float half_at(const uint8_t* p) {
  return half_to_float(load_unaligned<uint16_t>(p));
}

}  // namespace wok
