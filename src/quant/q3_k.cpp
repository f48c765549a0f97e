// Q3_K: 256 weights in 16 sub-blocks of 16: 32 bytes of third bits (bit s of byte j belongs to
// weight 32 s + j), 64 bytes of 2-bit codes (as in Q2_K), 12 bytes of 6-bit scales, f16 d.
// d * (sc - 32) * (q - 4).
#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytes = 110;

// Bytes 0-7 hold the low four bits (of 0-7 in their low, of 8-15 in their high halves), bytes 8-11
// two upper bits each of the scales i, i + 4, i + 8, i + 12.
uint8_t scale_code(const uint8_t* scales, int i) {
  const int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
  const int high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
  return static_cast<uint8_t>((low | high << 4) - 32);
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 8) {
    for (int part = 0; part < 8; ++part) {
      PackBlock& block = out[part];
      block.scale = half_at(row + 108);
      for (int half = 0; half < 2; ++half) {
        block.scale_code[half] = scale_code(row + 96, 2 * part + half);
      }
      const uint8_t* run = row + 32 + 32 * (part / 4);
      for (int j = 0; j < 32; ++j) {
        block.code[j] =
            static_cast<uint8_t>((run[j] >> (2 * (part % 4)) & 3) | (row[j] >> part & 1) << 2);
      }
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_q3_k = {
    "Q3_K",
    11,
    256,
    kBytes,
    Family::kInt3Super,
    dequantize_by_codes<Family::kInt3Super, 256, kBytes, codes>,
    codes};

}  // namespace wok
