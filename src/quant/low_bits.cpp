// Q1_0: 128 weights: f16 d, a bit each, lowest first: 1 is d, 0 is -d.
// Q2_0: 64 weights: f16 d, two bits each, lowest first: d * (q - 1).
#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytes = 18;

void codes1(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 4) {
    for (int i = 0; i < 128; ++i) {
      out[i / 32].code[i % 32] = static_cast<uint8_t>((row[2 + i / 8] >> (i % 8) & 1) << 1);
    }
    for (int part = 0; part < 4; ++part) out[part].scale = half_at(row);
  }
}

void codes2(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 2) {
    for (int i = 0; i < 64; ++i) {
      out[i / 32].code[i % 32] = row[2 + i / 4] >> (2 * (i % 4)) & 3;
    }
    for (int part = 0; part < 2; ++part) out[part].scale = half_at(row);
  }
}

}  // namespace

const WeightFormat kWeightFormat_q1_0 = {
    "Q1_0",
    41,
    128,
    kBytes,
    Family::kInt2Zero,
    dequantize_by_codes<Family::kInt2Zero, 128, kBytes, codes1>,
    codes1};
const WeightFormat kWeightFormat_q2_0 = {"Q2_0",
                                         42,
                                         64,
                                         kBytes,
                                         Family::kInt2Zero,
                                         dequantize_by_codes<Family::kInt2Zero, 64, kBytes, codes2>,
                                         codes2};

}  // namespace wok
