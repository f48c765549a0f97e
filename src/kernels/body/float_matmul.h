// Float panels times float activations, over the small vector type Simd.
#pragma once

#include <cstdint>

#include "kernels/body/row_tiles.h"

namespace wok {
namespace {

struct LoadHalf {
  static constexpr int kBytes = kW * 2;
  static Float load(const uint8_t* p) { return Simd::load_half(p); }
};
struct LoadBf16 {
  static constexpr int kBytes = kW * 2;
  static Float load(const uint8_t* p) { return Simd::load_bf16(p); }
};
struct LoadFloat {
  static constexpr int kBytes = kW * 4;
  static Float load(const uint8_t* p) { return Simd::load(reinterpret_cast<const float*>(p)); }
};

constexpr int kFloatTileRows = kW == 16 ? 8 : 4;

// Even and odd columns have sums of their own, for two chains of additions.
template <class Load, int kRows>
inline void float_tile(const uint8_t* panel, const Activations& x, int32_t row, Float* acc) {
  const float* a = x.f32 + static_cast<int64_t>(row) * x.cols;
  Float odd[kRows];
  for (int m = 0; m < kRows; ++m) acc[m] = odd[m] = Simd::zero();
  int32_t c = 0;
  for (; c + 2 <= x.cols; c += 2, panel += 2 * Load::kBytes) {
    __builtin_prefetch(panel + 2048);  // as integer panels do (int_blocks.h)
    const Float w0 = Load::load(panel);
    const Float w1 = Load::load(panel + Load::kBytes);
    for (int m = 0; m < kRows; ++m) {
      const float* am = a + static_cast<int64_t>(m) * x.cols + c;
      acc[m] = Simd::fma(w0, Simd::set1(am[0]), acc[m]);
      odd[m] = Simd::fma(w1, Simd::set1(am[1]), odd[m]);
    }
  }
  for (int m = 0; m < kRows; ++m) {
    if (c < x.cols) {
      acc[m] =
          Simd::fma(Load::load(panel), Simd::set1(a[static_cast<int64_t>(m) * x.cols + c]), acc[m]);
    }
    acc[m] = Simd::add(acc[m], odd[m]);
  }
}

template <class Load>
void float_matmul(const MatmulArgs& args) {
  constexpr int32_t kRowBlock = 16;  // activation rows that stay in L1 while the panels pass
  const Matrix& w = *args.weights;
  for (int32_t begin = args.row_begin; begin < args.row_end; begin += kRowBlock) {
    const int32_t end = args.row_end - begin < kRowBlock ? args.row_end : begin + kRowBlock;
    for (int32_t p = args.panel_begin; p < args.panel_end; ++p) {
      const uint8_t* data = w.data + p * w.panel_bytes;
      for_row_tiles<kFloatTileRows>(begin, end, [&]<int kRows>(int32_t row) {
        Float acc[kRows];
        float_tile<Load, kRows>(data, *args.x, row, acc);
        for (int m = 0; m < kRows; ++m) write_out(args, p, row + m, acc[m]);
      });
    }
  }
}

}  // namespace
}  // namespace wok
