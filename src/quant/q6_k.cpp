// Q6_K: 256 weights in 16 sub-blocks of 16: 128 bytes ql, 64 bytes qh, 16 signed scales, f16 d.
// A half (128 weights) has 64 bytes of ql (low nibbles 0-63, high 64-127) and 32 bytes of qh whose
// bit pairs belong to its four runs of 32. d * sc * (q - 32).
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 210;

uint8_t code_at(const uint8_t* block, int part, int j) {
  const int half = part / 4, run = part % 4;
  const uint8_t low = block[64 * half + 32 * (run % 2) + j];
  const uint8_t high = block[128 + 32 * half + j];
  return static_cast<uint8_t>((run < 2 ? low & 15 : low >> 4) | ((high >> (2 * run)) & 3) << 4);
}

float scale_at(const uint8_t* block, int sub) {
  return half_at(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + sub]));
}

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 256; ++b, row += kBytes, out += 256) {
    for (int part = 0; part < 8; ++part) {
      for (int j = 0; j < 32; ++j) {
        out[32 * part + j] =
            scale_at(row, 2 * part + j / 16) * static_cast<float>(code_at(row, part, j) - 32);
      }
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 8) {
    const float d = half_at(row + 208);
    for (int part = 0; part < 8; ++part) {
      out[part].scale = d;
      for (int i = 0; i < 2; ++i) out[part].scale_code[i] = row[192 + 2 * part + i];
    }
    for (int run = 0; run < 4; ++run) {  // two of the halves' runs that share their low nibbles
      const int half = run / 2, odd = run % 2;
      uint8_t low[32], high[32];
      std::memcpy(low, row + 64 * half + 32 * odd, sizeof(low));
      std::memcpy(high, row + 128 + 32 * half, sizeof(high));
      PackBlock* to = out + 4 * half + odd;
      for (int j = 0; j < 32; ++j) {
        to[0].code[j] = static_cast<uint8_t>((low[j] & 15) | (high[j] >> (2 * odd) & 3) << 4);
      }
      for (int j = 0; j < 32; ++j) {
        to[2].code[j] = static_cast<uint8_t>(low[j] >> 4 | (high[j] >> (2 * odd + 4) & 3) << 4);
      }
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_q6_k = {"Q6_K",     14,   256, kBytes, Family::kInt6Super,
                                         dequantize, codes};

}  // namespace wok
