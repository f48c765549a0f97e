// The formats of single blocks: floats, Q4_0 to Q8_0, IQ4_NL. Layouts: src/quant.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quantizer/each_block.h"
#include "quantizer/encode.h"
#include "quantizer/fit.h"

namespace wok {

EncodeFn find_encoder(const WeightFormat& format) {
#define WOK_FIND_ENCODER(id) \
  if (&format == &kWeightFormat_##id) return encoders::id;
  WOK_ENCODERS(WOK_FIND_ENCODER)
#undef WOK_FIND_ENCODER
  return nullptr;
}

void error_weights(const float* x, const float* importance, int n, float* w) {
  float squares = 0;
  for (int i = 0; i < n; ++i) squares += x[i] * x[i];
  const float spread = 2 * squares / static_cast<float>(n);
  for (int i = 0; i < n; ++i) {
    if (importance == nullptr) {
      w[i] = std::sqrt(spread) + std::fabs(x[i]) + 1e-20f;
    } else {
      w[i] = importance[i] * std::sqrt(spread + x[i] * x[i]) + 1e-20f;
    }
  }
}

namespace {

constexpr int kBlock = 32;

// Byte j: column j low, column j + 16 high; fifth bits into a word where there is one.
void put_nibbles(const int8_t* codes, int offset, uint8_t* nibbles, uint8_t* fifth) {
  uint32_t upper = 0;
  for (int j = 0; j < kBlock; ++j) {
    const int code = codes[j] + offset;
    if (j < 16) nibbles[j] = static_cast<uint8_t>(code & 15);
    if (j >= 16) nibbles[j - 16] |= static_cast<uint8_t>((code & 15) << 4);
    upper |= static_cast<uint32_t>(code >> 4 & 1) << j;
  }
  if (fifth != nullptr) std::memcpy(fifth, &upper, sizeof(upper));
}

template <int kLo>
void symmetric(const float* row, const float* importance, int64_t n, uint8_t* out) {
  constexpr bool kFive = kLo == -16;
  each_block<kBlock>(row, importance, n, kFive ? 22 : 18, out, [](auto* x, auto* w, uint8_t* to) {
    int8_t codes[kBlock];
    const float d = put_half(to, fit_symmetric(x, w, kBlock, kLo, -kLo - 1));
    round_symmetric(x, w, kBlock, d, kLo, -kLo - 1, codes);
    put_nibbles(codes, -kLo, to + (kFive ? 6 : 2), kFive ? to + 2 : nullptr);
  });
}

template <int kHi>
void affine(const float* row, const float* importance, int64_t n, uint8_t* out) {
  constexpr bool kFive = kHi == 31;
  each_block<kBlock>(row, importance, n, kFive ? 24 : 20, out, [](auto* x, auto* w, uint8_t* to) {
    int8_t codes[kBlock];
    // These formats can have a positive minimum: it is taken off first.
    const float lowest = std::max(0.0f, *std::min_element(x, x + kBlock));
    float shifted[kBlock];
    for (int i = 0; i < kBlock; ++i) shifted[i] = x[i] - lowest;
    const Affine fit = fit_affine(shifted, w, kBlock, kHi);
    const float d = put_half(to, fit.scale), m = put_half(to + 2, lowest - fit.min);
    round_affine(x, w, kBlock, {d, -m}, kHi, codes);
    put_nibbles(codes, 0, to + (kFive ? 8 : 4), kFive ? to + 4 : nullptr);
  });
}

}  // namespace

namespace encoders {

void f32(const float* row, const float*, int64_t n, uint8_t* out) {
  std::memcpy(out, row, static_cast<size_t>(n) * 4);
}

void f16(const float* row, const float*, int64_t n, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) put_half(out + 2 * i, row[i]);
}

void bf16(const float* row, const float*, int64_t n, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = float_to_bf16(row[i]);
    std::memcpy(out + 2 * i, &bits, sizeof(bits));
  }
}

void q8_0(const float* row, const float*, int64_t n, uint8_t* out) {
  for (int64_t b = 0; b < n / kBlock; ++b, row += kBlock, out += 34) {
    float largest = 0;
    for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(row[i]));
    const float d = put_half(out, largest / 127);
    int8_t codes[kBlock];
    float w[kBlock] = {};
    round_symmetric(row, w, kBlock, d, -127, 127, codes);
    std::memcpy(out + 2, codes, kBlock);
  }
}

void q4_0(const float* row, const float* importance, int64_t n, uint8_t* out) {
  symmetric<-8>(row, importance, n, out);
}
void q5_0(const float* row, const float* importance, int64_t n, uint8_t* out) {
  symmetric<-16>(row, importance, n, out);
}
void q4_1(const float* row, const float* importance, int64_t n, uint8_t* out) {
  affine<15>(row, importance, n, out);
}
void q5_1(const float* row, const float* importance, int64_t n, uint8_t* out) {
  affine<31>(row, importance, n, out);
}

void iq4_nl(const float* row, const float* importance, int64_t n, uint8_t* out) {
  const int8_t* table = kWeightFormat_iq4_nl.codebook;
  each_block<kBlock>(row, importance, n, 18, out, [&](auto* x, auto* w, uint8_t* to) {
    int8_t codes[kBlock];
    const float d = put_half(to, fit_table(x, w, kBlock, table));
    round_table(x, w, kBlock, d, table, codes);
    put_nibbles(codes, 0, to + 2, nullptr);
  });
}

}  // namespace encoders
}  // namespace wok
