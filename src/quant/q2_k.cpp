// Q2_K: 256 weights in 16 sub-blocks of 16: 16 bytes of 4-bit scale (low) and min (high), 64 bytes
// of 2-bit codes (128 weights share a run of 32 bytes, bits 2s and 2s + 1 belong to its s-th 32),
// f16 d, f16 dmin. d * sc * q - dmin * mn.
#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytes = 84;

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 8) {
    for (int part = 0; part < 8; ++part) {
      PackBlock& block = out[part];
      block.scale = half_at(row + 80);
      block.min = half_at(row + 82);
      for (int half = 0; half < 2; ++half) {
        const uint8_t both = row[2 * part + half];
        block.scale_code[half] = both & 15;
        block.half_min_code[half] = both >> 4;
      }
      const uint8_t* run = row + 16 + 32 * (part / 4);
      for (int j = 0; j < 32; ++j) block.code[j] = run[j] >> (2 * (part % 4)) & 3;
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_q2_k = {
    "Q2_K",
    10,
    256,
    kBytes,
    Family::kInt2Super,
    dequantize_by_codes<Family::kInt2Super, 256, kBytes, codes>,
    codes};

}  // namespace wok
