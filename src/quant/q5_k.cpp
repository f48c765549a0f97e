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

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 8) {
    set_k_scales(row, out);
    uint8_t fifth[32];  // those of sub-blocks 2r and 2r + 1 lowest
    std::memcpy(fifth, row + 16, sizeof(fifth));
    for (int r = 0; r < 4; ++r) {
      uint8_t run[32];
      std::memcpy(run, row + 48 + 32 * r, sizeof(run));
      for (int j = 0; j < 32; ++j) {
        out[2 * r].code[j] = static_cast<uint8_t>((run[j] & 15) | (fifth[j] & 1) << 4);
      }
      for (int j = 0; j < 32; ++j) {
        out[2 * r + 1].code[j] = static_cast<uint8_t>(run[j] >> 4 | (fifth[j] & 2) << 3);
      }
      for (int j = 0; j < 32; ++j) fifth[j] >>= 2;
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_q5_k = {"Q5_K",     13,   256, kBytes, Family::kInt5Super,
                                         dequantize, codes};

}  // namespace wok
