// Packed integer panels times the exact rows of the activations: those of tokens being decoded. The
// float operations of an output are the same for one row and for many, so batching never changes a
// result. Beyond one tile of rows a panel is first unpacked to bytes in scratch, so that decoding
// nibbles is paid once a panel and not once a tile.
#pragma once

#include <cstdint>

#include "kernels/body/int_blocks.h"
#include "kernels/body/row_tiles.h"
#include "kernels/body/unroll.h"

namespace wok {
namespace {

// acc[m] += block times columns of row `row + m`: the dot product of codes in integers, times both
// scales, and the weights' min times the sum of the activations.
template <class F, int kRows>
WOK_INLINE inline void add_block(const Block<F>& block, const Activations& x, int32_t b,
                                 int32_t row, Float* acc) {
  const int64_t at = static_cast<int64_t>(b) * x.exact_rows + row;
  const int8_t* q = x.q + at * kBlockColumns;
  const float* scale = x.scale + at;
  unrolled<kRows>([&](auto m) WOK_INLINE {
    const int8_t* a = q + m * kBlockColumns;
    const Float da = Simd::set1(scale[m]);
    const Factors& f = block.factors[0];
    if constexpr (F::kSigned) {
      const Float dot = Simd::to_float(Simd::template dot_signed<kBlockGroups>(block.w, a));
      acc[m] = Simd::fma(dot, Simd::mul(f.scale, da), acc[m]);
      if constexpr (Simd::kSignedOffset != 0) {
        acc[m] = Simd::fma(f.min, Simd::set1(x.sum[at + m]), acc[m]);
      }
    } else if constexpr (F::kHalves) {
      const float* s = x.half_sum + (at + m) * 2;
      const Factors& g = block.factors[1];
      constexpr int kDepth = F::Codes::kDepth;
      const Float dot0 = Simd::to_float(Simd::template dot_unsigned<kDepth, 4>(block.w, a));
      const Float dot1 =
          Simd::to_float(Simd::template dot_unsigned<kDepth, 4>(block.w + 4, a + 16));
      acc[m] = Simd::fma(dot0, Simd::mul(f.scale, da), acc[m]);
      acc[m] = Simd::fma(f.min, Simd::set1(s[0]), acc[m]);
      acc[m] = Simd::fma(dot1, Simd::mul(g.scale, da), acc[m]);
      acc[m] = Simd::fma(g.min, Simd::set1(s[1]), acc[m]);
    } else {
      const Float dot =
          Simd::to_float(Simd::template dot_unsigned<F::Codes::kDepth, kBlockGroups>(block.w, a));
      acc[m] = Simd::fma(dot, Simd::mul(f.scale, da), acc[m]);
      acc[m] = Simd::fma(f.min, Simd::set1(x.sum[at + m]), acc[m]);
    }
  });
}

// An unpacked block in scratch: its vectors of codes, then its factors.
template <class F>
struct UnpackedPanel {
  static constexpr int kFactors = F::kHalves ? 2 : 1;  // min follows from scale where halves differ
  static constexpr int kStride = (kBlockGroups + 2) * kVectorBytes;

  static void fill(const uint8_t* panel, int32_t blocks, uint8_t* out) {
    for_blocks<F>(panel, blocks, [&](const Block<F>& block, int32_t b) WOK_INLINE {
      uint8_t* to = out + static_cast<int64_t>(b) * kStride;
      for (int v = 0; v < kBlockGroups; ++v) Simd::store_bytes(to + v * kVectorBytes, block.w[v]);
      auto* factors = reinterpret_cast<float*>(to + kBlockGroups * kVectorBytes);
      Simd::store(factors, block.factors[0].scale);
      Simd::store(factors + kW,
                  F::kHalves ? block.factors[kFactors - 1].scale : block.factors[0].min);
    });
  }
  static void load(const uint8_t* panel, int32_t b, Block<F>& block) {
    const uint8_t* from = panel + static_cast<int64_t>(b) * kStride;
    for (int v = 0; v < kBlockGroups; ++v) block.w[v] = Simd::load_bytes(from + v * kVectorBytes);
    const auto* factors = reinterpret_cast<const float*>(from + kBlockGroups * kVectorBytes);
    const Float first = Simd::load(factors), second = Simd::load(factors + kW);
    if constexpr (F::kHalves) {
      const Float zero = Simd::set1(-32.0f);
      block.factors[0] = {first, Simd::mul(first, zero)};
      block.factors[1] = {second, Simd::mul(second, zero)};
    } else {
      block.factors[0] = {first, second};
    }
  }
};

template <class F>
void exact_matmul(const MatmulArgs& args, int32_t begin, int32_t end) {
  const Matrix& w = *args.weights;
  const Activations& x = *args.x;
  const int32_t blocks = w.cols / kBlockColumns;
  const bool unpack = end - begin > kTileRows;
  for (int32_t p = args.panel_begin; p < args.panel_end; ++p) {
    const uint8_t* panel = w.data + p * w.panel_bytes;
    if (unpack) UnpackedPanel<F>::fill(panel, blocks, args.scratch);
    for_row_tiles<kTileRows>(begin, end, [&]<int kRows>(int32_t row) {
      Float acc[kRows];
      for (int m = 0; m < kRows; ++m) acc[m] = Simd::zero();
      if (unpack) {
        for (int32_t b = 0; b < blocks; ++b) {
          Block<F> block;
          UnpackedPanel<F>::load(args.scratch, b, block);
          add_block<F, kRows>(block, x, b, row, acc);
        }
      } else {
        for_blocks<F>(panel, blocks, [&](const Block<F>& block, int32_t b) WOK_INLINE {
          add_block<F, kRows>(block, x, b, row, acc);
        });
      }
      for (int m = 0; m < kRows; ++m) write_out(args, p, row + m, acc[m]);
    });
  }
}

}  // namespace
}  // namespace wok
