// Q4_1: 32 weights, f16 d, f16 m, 16 bytes of nibbles; d * q + m.
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 20;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b, row += kBytes, out += 32) {
    const float d = half_at(row), m = half_at(row + 2);
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(row[4 + j] & 15) + m;
      out[j + 16] = d * static_cast<float>(row[4 + j] >> 4) + m;
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    out->scale = half_at(row);
    out->min = half_at(row + 2);
    split_halves(row + 4, out->code);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q4_1 = {"Q4_1", 3, 32, kBytes, Family::kInt4, dequantize, codes};

}  // namespace wok
