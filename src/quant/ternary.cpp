// TQ1_0 and TQ2_0: 256 weights of -1, 0 and 1 times an f16 d.
// TQ1_0: 48 bytes of five base-3 digits each, 4 bytes of four, d. A byte is a fraction: times 3 it
// carries its next digit into the bits above.
// TQ2_0: 64 bytes of 2-bit digits (a run of 32 bytes holds four times 32 weights), d.
#include "quant/by_codes.h"

namespace wok {
namespace {

constexpr int kBytes1 = 54, kBytes2 = 66;
constexpr uint8_t kPowersOf3[5] = {1, 3, 9, 27, 81};

uint8_t digit(uint8_t byte, int place) {
  return static_cast<uint8_t>(static_cast<uint8_t>(byte * kPowersOf3[place]) * 3 >> 8);
}

void codes1(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes1, out += 8) {
    uint8_t code[256];
    for (int i = 0; i < 160; ++i) code[i] = digit(row[i % 32], i / 32);
    for (int i = 0; i < 80; ++i) code[160 + i] = digit(row[32 + i % 16], i / 16);
    for (int i = 0; i < 16; ++i) code[240 + i] = digit(row[48 + i % 4], i / 4);
    for (int part = 0; part < 8; ++part) {
      out[part].scale = half_at(row + 52);
      std::memcpy(out[part].code, code + 32 * part, 32);
    }
  }
}

void codes2(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes2, out += 8) {
    for (int part = 0; part < 8; ++part) {
      out[part].scale = half_at(row + 64);
      const uint8_t* run = row + 32 * (part / 4);
      for (int j = 0; j < 32; ++j) out[part].code[j] = run[j] >> (2 * (part % 4)) & 3;
    }
  }
}

}  // namespace

const WeightFormat kWeightFormat_tq1_0 = {
    "TQ1_0",
    34,
    256,
    kBytes1,
    Family::kInt2Zero,
    dequantize_by_codes<Family::kInt2Zero, 256, kBytes1, codes1>,
    codes1};
const WeightFormat kWeightFormat_tq2_0 = {
    "TQ2_0",
    35,
    256,
    kBytes2,
    Family::kInt2Zero,
    dequantize_by_codes<Family::kInt2Zero, 256, kBytes2, codes2>,
    codes2};

}  // namespace wok
