// Q4_K: 256 weights in 8 sub-blocks of 32: f16 d, f16 dmin, 12 bytes of 6-bit scales and minima,
// 128 bytes of nibbles (a run of 32 bytes holds sub-block 2r low, 2r+1 high).
// d * sc * q - dmin * mn.
#include "quant/k_scales.h"
#include "quant/nibbles.h"

namespace wok {
namespace {

constexpr int kBytes = 144;

void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / 256; ++b, row += kBytes, out += 256) {
    const float d = half_at(row), dmin = half_at(row + 2);
    for (int s = 0; s < 8; ++s) {
      const KScale k = k_scale(row + 4, s);
      const float scale = d * k.scale, min = dmin * k.min;
      const uint8_t* run = row + 16 + s / 2 * 32;
      for (int j = 0; j < 32; ++j) {
        const int q = s % 2 == 0 ? run[j] & 15 : run[j] >> 4;
        out[32 * s + j] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, out += 8) {
    set_k_scales(row, out);
    for (int r = 0; r < 4; ++r) {
      uint8_t run[32];
      std::memcpy(run, row + 16 + 32 * r, sizeof(run));
      for (int j = 0; j < 32; ++j) out[2 * r].code[j] = run[j] & 15;
      for (int j = 0; j < 32; ++j) out[2 * r + 1].code[j] = run[j] >> 4;
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_q4_k = {"Q4_K",     12,   256, kBytes, Family::kInt4Super,
                                         dequantize, codes};

}  // namespace wok
