// IQ1_S and IQ1_M: 256 weights, eight at a time a point of a grid of -1, 0 and 1, all eight moved
// up or down by 1/8. d * (2 s + 1) * (g ± 1/8). IQ1_S: f16 d; 32 grid bytes; for 32 weights 16
// bits: four times 3 upper grid bits, 3 of the scale, the direction. IQ1_M: 32 grid bytes; for 16
// weights a byte: twice 3 upper grid bits and the direction; four 16-bit words of four 3-bit scales
// each, whose top 4 bits together are d.
#include "quant/by_codes.h"
#include "quant/iq_grids.h"

namespace wok {
namespace {

constexpr int kBytesS = 50, kBytesM = 56;
// 64 times g + 1/8, then g - 1/8.
constexpr int8_t kCodebook[16] = {-56, 8, 72, 0, -72, -8, 56, 0};
constexpr float kUnit = 1.0f / 64;

void put_eight(uint16_t grid, bool down, uint8_t* code) {
  for (int i = 0; i < 8; ++i) {
    code[i] = static_cast<uint8_t>(grid_of_8(grid, i) | (down ? 4 : 0));
  }
}

void codes_s(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesS, out += 8) {
    for (int part = 0; part < 8; ++part) {
      const auto word = load_unaligned<uint16_t>(row + 34 + 2 * part);
      out[part].scale = half_at(row) * kUnit;
      out[part].scale_code[0] = out[part].scale_code[1] =
          static_cast<uint8_t>(2 * (word >> 12 & 7) + 1);
      for (int e = 0; e < 4; ++e) {
        const int grid = row[2 + 4 * part + e] | (word >> (3 * e) & 7) << 8;
        put_eight(kGridIq1[grid], (word & 0x8000) != 0, out[part].code + 8 * e);
      }
    }
  }
}

void codes_m(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesM, out += 8) {
    const uint8_t* scales = row + 48;
    uint16_t d = 0;
    for (int i = 0; i < 4; ++i) {
      d = static_cast<uint16_t>(d | load_unaligned<uint16_t>(scales + 2 * i) >> 12 << (4 * i));
    }
    for (int part = 0; part < 8; ++part) {
      out[part].scale = half_to_float(d) * kUnit;
      for (int half = 0; half < 2; ++half) {
        const int at = 2 * part + half;  // of 16
        const int code = load_unaligned<uint16_t>(scales + 2 * (at / 4)) >> (3 * (at % 4)) & 7;
        out[part].scale_code[half] = static_cast<uint8_t>(2 * code + 1);
        for (int e = 0; e < 2; ++e) {
          const int high = row[32 + at] >> (4 * e);
          const int grid = row[2 * at + e] | (high & 7) << 8;
          put_eight(kGridIq1[grid], (high & 8) != 0, out[part].code + 16 * half + 8 * e);
        }
      }
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_iq1_s = {
    "IQ1_S",
    19,
    256,
    kBytesS,
    Family::kTable3Super,
    dequantize_by_codes<Family::kTable3Super, 256, kBytesS, codes_s, kCodebook>,
    codes_s,
    kCodebook};
const WeightFormat kWeightFormat_iq1_m = {
    "IQ1_M",
    29,
    256,
    kBytesM,
    Family::kTable3Super,
    dequantize_by_codes<Family::kTable3Super, 256, kBytesM, codes_m, kCodebook>,
    codes_m,
    kCodebook};

}  // namespace wok
