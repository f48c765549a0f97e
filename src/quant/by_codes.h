// For formats that are read in one way only: what their codes stand for is what they dequantize to.
// Each product of an f16 factor, a scale and a code fits a float's 24 bits, so this is exact.
#pragma once

#include "quant/nibbles.h"

namespace wok {

template <Family kFamily, int kBlock, int kBytes, auto kCodes, const int8_t* kCodebook = nullptr>
void dequantize_by_codes(const uint8_t* row, float* out, int64_t n) {
  constexpr int kParts = kBlock / kBlockColumns;
  PackBlock blocks[kParts] = {};
  for (int64_t b = 0; b < n / kBlock; ++b, row += kBytes) {
    kCodes(row, 1, blocks);
    for (const PackBlock& block : blocks) {
      for (int c = 0; c < kBlockColumns; ++c) {
        *out++ = unpacked_weight(kFamily, kCodebook, block, c);
      }
    }
  }
}

}  // namespace wok
