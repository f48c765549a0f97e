// Q5_1: 32 weights, f16 d, f16 m, 4 bytes of fifth bits, 16 bytes of nibbles; d * q + m.
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 24;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b, row += kBytes, out += 32) {
    const float d = half_at(row), m = half_at(row + 2);
    const auto fifth = load_unaligned<uint32_t>(row + 4);
    for (int j = 0; j < 32; ++j) {
      const int nibble = j < 16 ? row[8 + j] & 15 : row[8 + j - 16] >> 4;
      out[j] = d * static_cast<float>(nibble | static_cast<int>((fifth >> j) & 1) << 4) + m;
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    out->scale = half_at(row);
    out->min = half_at(row + 2);
    split_halves(row + 8, out->code);
    add_fifth_bits(row + 4, out->code);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q5_1 = {"Q5_1", 7, 32, kBytes, Family::kInt5, dequantize, codes};

}  // namespace wok
