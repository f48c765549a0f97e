// Q5_0: 32 weights, f16 d, 4 bytes of fifth bits, 16 bytes of nibbles; d * (q - 16).
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 22;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b, row += kBytes, out += 32) {
    const float d = half_at(row);
    const auto fifth = load_unaligned<uint32_t>(row + 2);
    for (int j = 0; j < 32; ++j) {
      const int nibble = j < 16 ? row[6 + j] & 15 : row[6 + j - 16] >> 4;
      out[j] = d * static_cast<float>((nibble | static_cast<int>((fifth >> j) & 1) << 4) - 16);
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    out->scale = half_at(row);
    split_halves(row + 6, out->code);
    add_fifth_bits(row + 2, out->code);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q5_0 = {"Q5_0",     6,    32, kBytes, Family::kInt5Zero,
                                         dequantize, codes};

}  // namespace wok
