// IQ4_NL and IQ4_XS: four bits that name one of 16 values, closer together around zero.
// IQ4_NL: 32 weights: f16 d, 16 bytes in split halves.
// IQ4_XS: 256 weights in 8 blocks: f16 d, 16 bits with two upper bits of each scale, 4 bytes with
// their lower four, then 16 bytes a block as IQ4_NL's. d * (sc - 32) * value.
#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytesNl = 18, kBytesXs = 136;
// Values of the format as ggml defines them (llama.cpp, MIT).
constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

void codes_nl(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesNl, ++out) {
    out->scale = half_at(row);
    split_halves(row + 2, out->code);
  }
}

void codes_xs(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytesXs, out += 8) {
    const auto high = load_unaligned<uint16_t>(row + 2);
    for (int part = 0; part < 8; ++part) {
      const int low = row[4 + part / 2] >> (4 * (part % 2)) & 15;
      const auto scale = static_cast<uint8_t>((low | (high >> (2 * part) & 3) << 4) - 32);
      out[part].scale = half_at(row);
      out[part].scale_code[0] = out[part].scale_code[1] = scale;
      split_halves(row + 8 + 16 * part, out[part].code);
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_iq4_nl = {
    "IQ4_NL",
    20,
    32,
    kBytesNl,
    Family::kTable4,
    dequantize_by_codes<Family::kTable4, 32, kBytesNl, codes_nl, kCodebook>,
    codes_nl,
    kCodebook};
const WeightFormat kWeightFormat_iq4_xs = {
    "IQ4_XS",
    23,
    256,
    kBytesXs,
    Family::kTable4Super,
    dequantize_by_codes<Family::kTable4Super, 256, kBytesXs, codes_xs, kCodebook>,
    codes_xs,
    kCodebook};

}  // namespace wok
