// Q4_0: 32 weights, f16 d, 16 bytes of nibbles; d * (q - 8).
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 18;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b, row += kBytes, out += 32) {
    const float d = half_at(row);
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>((row[2 + j] & 15) - 8);
      out[j + 16] = d * static_cast<float>((row[2 + j] >> 4) - 8);
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    out->scale = half_at(row);
    split_halves(row + 2, out->code);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q4_0 = {"Q4_0",     2,    32, kBytes, Family::kInt4Zero,
                                         dequantize, codes};

}  // namespace wok
