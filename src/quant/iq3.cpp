// IQ3_XXS and IQ3_S: 256 weights, four at a time a point of a grid of eight sizes, with signs
// apart. IQ3_XXS: f16 d; 64 grid bytes; for 32 weights 32 bits: four times 7 of signs, 4 of the
// scale. d * (2 s + 1) / 4 * size. IQ3_S: f16 d; 64 grid bytes, 8 bytes with their upper bits, 32
// bytes of signs, 4 bytes of 4-bit scales. d * (2 s + 1) * size.
#include "quant/by_codes.h"
#include "quant/iq_grids.h"

namespace wok {
namespace {

constexpr int kBytesXxs = 98, kBytesS = 110;
// Sizes times 2 and times 8, then the same negative: near the largest int8.
constexpr int8_t kCodebookXxs[16] = {8,  24,  40,  56,  72,  88,  104,  124,
                                     -8, -24, -40, -56, -72, -88, -104, -124};
constexpr int8_t kCodebookS[16] = {8,  24,  40,  56,  72,  88,  104,  120,
                                   -8, -24, -40, -56, -72, -88, -104, -120};

void put_four(uint16_t grid, int signs, uint8_t* code) {
  for (int i = 0; i < 4; ++i) {
    code[i] = static_cast<uint8_t>(grid_of_4(grid, i) | (signs >> i & 1) << 3);
  }
}

void set_scale(float scale, uint32_t code, PackBlock& block) {
  block.scale = scale;
  block.scale_code[0] = block.scale_code[1] = static_cast<uint8_t>(2 * code + 1);
}

void codes_xxs(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesXxs, out += 8) {
    for (int part = 0; part < 8; ++part) {
      const auto word = load_unaligned<uint32_t>(row + 66 + 4 * part);
      set_scale(half_at(row) * (1.0f / 8), word >> 28, out[part]);
      for (int e = 0; e < 8; ++e) {
        const int signs = signs_of_7(word >> (7 * (e / 2))) >> (4 * (e % 2));
        put_four(kGridIq3Xxs[row[2 + 8 * part + e]], signs, out[part].code + 4 * e);
      }
    }
  }
}

void codes_s(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesS, out += 8) {
    for (int part = 0; part < 8; ++part) {
      set_scale(half_at(row) * (1.0f / 8), row[106 + part / 2] >> (4 * (part % 2)) & 15, out[part]);
      for (int e = 0; e < 8; ++e) {
        const int grid = row[2 + 8 * part + e] | (row[66 + part] >> e & 1) << 8;
        const int signs = row[74 + 4 * part + e / 2] >> (4 * (e % 2));
        put_four(kGridIq3S[grid], signs, out[part].code + 4 * e);
      }
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_iq3_xxs = {
    "IQ3_XXS",
    18,
    256,
    kBytesXxs,
    Family::kTable4Super,
    dequantize_by_codes<Family::kTable4Super, 256, kBytesXxs, codes_xxs, kCodebookXxs>,
    codes_xxs,
    kCodebookXxs};
const WeightFormat kWeightFormat_iq3_s = {
    "IQ3_S",
    21,
    256,
    kBytesS,
    Family::kTable4Super,
    dequantize_by_codes<Family::kTable4Super, 256, kBytesS, codes_s, kCodebookS>,
    codes_s,
    kCodebookS};

}  // namespace wok
