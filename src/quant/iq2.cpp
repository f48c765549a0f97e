// IQ2_XXS, IQ2_XS and IQ2_S: 256 weights, eight at a time a point of a grid of the sizes 8, 25 and
// 43, with signs apart. d * (2 s + 1) / 8 * size.
// IQ2_XXS: f16 d; for 32 weights 8 bytes: four grid bytes, then 32 bits: four times 7 of signs, 4
// of the scale. IQ2_XS: f16 d; 16 bits for 8 weights: 9 of the grid, 7 of signs; 8 bytes of 4-bit
// scales of 16 weights. IQ2_S: f16 d; 32 grid bytes, 32 sign bytes, 8 bytes with two upper grid
// bits each, scales as IQ2_XS.
#include "quant/by_codes.h"
#include "quant/iq_grids.h"

namespace wok {
namespace {

constexpr int kBytesXxs = 66, kBytesXs = 74, kBytesS = 82;
// Sizes times 2, then the same negative.
constexpr int8_t kCodebook[16] = {16, 50, 86, 0, -16, -50, -86, 0};
constexpr float kUnit = 1.0f / 16;

void put_eight(uint16_t grid, uint8_t signs, uint8_t* code) {
  for (int i = 0; i < 8; ++i) {
    code[i] = static_cast<uint8_t>(grid_of_8(grid, i) | (signs >> i & 1) << 2);
  }
}

void set_scales(float d, uint8_t both, PackBlock& block) {
  block.scale = d * kUnit;
  block.scale_code[0] = static_cast<uint8_t>(2 * (both & 15) + 1);
  block.scale_code[1] = static_cast<uint8_t>(2 * (both >> 4) + 1);
}

void codes_xxs(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesXxs, out += 8) {
    for (int part = 0; part < 8; ++part) {
      const uint8_t* grid = row + 2 + 8 * part;
      const auto word = load_unaligned<uint32_t>(grid + 4);
      const uint32_t scale = word >> 28;
      set_scales(half_at(row), static_cast<uint8_t>(scale | scale << 4), out[part]);
      for (int e = 0; e < 4; ++e) {
        put_eight(kGridIq2Xxs[grid[e]], signs_of_7(word >> (7 * e)), out[part].code + 8 * e);
      }
    }
  }
}

void codes_xs(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesXs, out += 8) {
    for (int part = 0; part < 8; ++part) {
      set_scales(half_at(row), row[66 + part], out[part]);
      for (int e = 0; e < 4; ++e) {
        const auto word = load_unaligned<uint16_t>(row + 2 + 8 * part + 2 * e);
        put_eight(kGridIq2Xs[word & 511], signs_of_7(word >> 9), out[part].code + 8 * e);
      }
    }
  }
}

void codes_s(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesS, out += 8) {
    for (int part = 0; part < 8; ++part) {
      set_scales(half_at(row), row[74 + part], out[part]);
      for (int e = 0; e < 4; ++e) {
        const int at = 4 * part + e;
        const int grid = row[2 + at] | (row[66 + part] >> (2 * e) & 3) << 8;
        put_eight(kGridIq2S[grid], row[34 + at], out[part].code + 8 * e);
      }
    }
  }
}

}  // namespace

#define WOK_IQ2(id, name, type, bytes, codes)                                  \
  const WeightFormat kWeightFormat_##id = {                                    \
      name,                                                                    \
      type,                                                                    \
      256,                                                                     \
      bytes,                                                                   \
      Family::kTable3Super,                                                    \
      dequantize_by_codes<Family::kTable3Super, 256, bytes, codes, kCodebook>, \
      codes,                                                                   \
      kCodebook};
WOK_IQ2(iq2_xxs, "IQ2_XXS", 16, kBytesXxs, codes_xxs)
WOK_IQ2(iq2_xs, "IQ2_XS", 17, kBytesXs, codes_xs)
WOK_IQ2(iq2_s, "IQ2_S", 22, kBytesS, codes_s)
#undef WOK_IQ2

}  // namespace wok
