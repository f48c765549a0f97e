// Four-bit floats of a sign, two exponent bits and one of mantissa (E2M1): 0, 0.5, 1, 1.5, 2, 3, 4,
// 6 and their negatives.
// MXFP4 (OCP Microscaling Formats 1.0): 32 weights: an exponent (E8M0), 16 bytes in split halves.
// NVFP4: 64 weights: 4 scales of 16 weights each (E4M3 without its sign), 32 bytes, each 8 of which
// are split halves of 16 weights.
#include <cmath>

#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytesMx = 17, kBytesNv = 36;
// Sixteen times the values: near the largest int8, so that prompt rows round them least.
constexpr int kTimes = 16;
constexpr int8_t kCodebook[16] = {0, 8,  16,  24,  32,  48,  64,  96,
                                  0, -8, -16, -24, -32, -48, -64, -96};

void codes_mx(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesMx, ++out) {
    // Packed as f16: exactly for exponents from -20 to 19; smaller ones lose bits, larger ones are
    // infinite.
    out->scale = std::ldexp(1.0f / kTimes, row[0] - 127);
    split_halves(row + 1, out->code);
  }
}

float scale_e4m3(uint8_t bits) {
  if (bits == 0x7f) return 0;  // NaN, and zero to the reference
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

void codes_nv(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesNv, out += 2) {
    for (int part = 0; part < 2; ++part) {
      out[part].scale = scale_e4m3(row[2 * part]) / kTimes;
      out[part].second_scale = scale_e4m3(row[2 * part + 1]) / kTimes;
      for (int j = 0; j < 32; ++j) {
        const uint8_t byte = row[4 + 16 * part + 8 * (j / 16) + j % 8];
        out[part].code[j] = j % 16 < 8 ? byte & 15 : byte >> 4;
      }
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_mxfp4 = {
    "MXFP4",
    39,
    32,
    kBytesMx,
    Family::kTable4,
    dequantize_by_codes<Family::kTable4, 32, kBytesMx, codes_mx, kCodebook>,
    codes_mx,
    kCodebook};
const WeightFormat kWeightFormat_nvfp4 = {
    "NVFP4",
    40,
    64,
    kBytesNv,
    Family::kTable4Halves,
    dequantize_by_codes<Family::kTable4Halves, 64, kBytesNv, codes_nv, kCodebook>,
    codes_nv,
    kCodebook};

}  // namespace wok
