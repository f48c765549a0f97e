// Q8_0: 32 weights, f16 d, 32 signed bytes; d * q.
#include <cstring>

#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 34;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b, row += kBytes, out += 32) {
    const float d = half_at(row);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(static_cast<int8_t>(row[2 + j]));
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    out->scale = half_at(row);
    std::memcpy(out->code, row + 2, 32);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q8_0 = {"Q8_0", 8, 32, kBytes, Family::kInt8, dequantize, codes};

}  // namespace wok
