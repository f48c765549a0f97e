// Q5_K: Q4_K with a fifth bit: 32 bytes qh between the scales and the nibbles, bit s of byte k
// belongs to weight 32 s + k.
#include "quant/k_scales.h"
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 176;

uint8_t code_at(const uint8_t* block, int s, int j) {
  const uint8_t byte = block[48 + s / 2 * 32 + j];
  const int fifth = (block[16 + j] >> s) & 1;
  return static_cast<uint8_t>((s % 2 == 0 ? byte & 15 : byte >> 4) | fifth << 4);
}

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 256; ++b, row += kBytes, out += 256) {
    const float d = half_at(row), dmin = half_at(row + 2);
    for (int s = 0; s < 8; ++s) {
      const KScale k = k_scale(row + 4, s);
      const float scale = d * k.scale, min = dmin * k.min;
      for (int j = 0; j < 32; ++j) {
        out[32 * s + j] = scale * static_cast<float>(code_at(row, s, j)) - min;
      }
    }
  }
}

void codes(const uint8_t* block, int32_t part, PackBlock& out) {
  const KScale k = k_scale(block + 4, part);
  out.scale = half_at(block);
  out.min = half_at(block + 2);
  out.scale_code[0] = k.scale;
  out.min_code = k.min;
  for (int j = 0; j < 32; ++j) out.code[j] = code_at(block, part, j);
}

}  // namespace

const WeightFormat kWeightFormat_q5_k = {"Q5_K",     13,   256, kBytes, Family::kInt5Super,
                                         dequantize, codes};

}  // namespace wok
