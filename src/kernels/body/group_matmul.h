// Packed integer panels times prompt rows. Prefill waits for arithmetic, and with a scale every 32
// columns a third of the arithmetic would be scaling. So weights are rounded to int8 with one scale
// a group of 128 columns, once for all rows of a call, and meet activations of the same groups: 32
// dot products a scaling. Rounding adds about 1/250 of a group's largest weight, far below what the
// formats' own rounding left (docs/adr/0010 has the figures).
//
// A task's kPanelsPerTask panels are unpacked kGroupBlockColumns at a time into scratch that stays
// in L1 while all rows pass. Every output is the same sum whatever rows and panels are beside it.
#pragma once

#include <cstdint>

#include "kernels/body/int_blocks.h"
#include "kernels/body/row_tiles.h"
#include "kernels/body/unroll.h"

namespace wok {
namespace {

constexpr int kGroupBlocks = kGroupColumns / kBlockColumns;
constexpr int kGroupsAtOnce = kGroupBlockColumns / kGroupColumns;
constexpr int kGroupSteps = kGroupColumns / 4;  // dot products of a whole group
// Rows of a tile: with 4 panels their sums, the weights and one activation fill the 32 registers.
constexpr int kPromptTileRows = kW == 16 ? 6 : 2;

// Scratch of kPanels panels by kGroupBlockColumns columns.
template <int kPanels>
struct GroupScratch {
  int8_t* codes;  // [columns / 4, kPanels] vectors
  int32_t* bias;  // [groups, kPanels] vectors: -128 times the sum of a row's codes
  float* scale;   // [groups, kPanels] vectors

  explicit GroupScratch(uint8_t* at)
      : codes(reinterpret_cast<int8_t*>(at)),
        bias(reinterpret_cast<int32_t*>(at + kPanels * kVectorBytes * (kGroupBlockColumns / 4))),
        scale(reinterpret_cast<float*>(bias) + kGroupsAtOnce * kPanels * kW) {}
};

// Largest weight of a block in size, as its factors allow.
template <class F>
inline Float block_bound(const Block<F>& block) {
  Float bound = Simd::zero();
  for (const Factors& f : block.factors) {
    const Float largest = Simd::set1(F::kLargest);
    if constexpr (F::kSigned) {
      bound = Simd::max(bound, Simd::abs(Simd::mul(f.scale, largest)));
    } else {
      bound = Simd::max(bound, Simd::abs(f.min));
      bound = Simd::max(bound, Simd::abs(Simd::fma(f.scale, largest, f.min)));
    }
  }
  return bound;
}

// Rounds `blocks` blocks of one panel to a group of int8 codes.
template <class F, int kPanels>
inline void round_group(const Block<F>* group, int blocks, int g, int panel,
                        const GroupScratch<kPanels>& to) {
  Float bound = Simd::zero();
  for (int i = 0; i < blocks; ++i) bound = Simd::max(bound, block_bound(group[i]));
  // A group of zeros: any divisor gives zeros.
  bound = Simd::max(bound, Simd::set1(1e-30f));
  const Float inverse = Simd::div(Simd::set1(127.0f), bound);
  Int sum = Simd::zero_int();
  int8_t* codes = to.codes + (g * kGroupSteps * kPanels + panel) * kVectorBytes;
  for (int i = 0; i < blocks; ++i) {
    for (int half = 0; half < 2; ++half) {
      const Factors& f = group[i].factors[F::kHalves ? half : 0];
      const auto rounding = Simd::template rounding<F::kSigned>(Simd::mul(f.scale, inverse),
                                                                Simd::mul(f.min, inverse));
      for (int v = 4 * half; v < 4 * half + 4; ++v) {
        const Bytes code = Simd::template round_codes<F::kSigned>(group[i].w[v], rounding);
        sum = Simd::add_codes(sum, code);
        Simd::store_bytes(codes, code);
        codes += kPanels * kVectorBytes;
      }
    }
  }
  Simd::store_int(to.bias + (g * kPanels + panel) * kW, Simd::times_minus_128(sum));
  Simd::store(to.scale + (g * kPanels + panel) * kW, Simd::mul(bound, Simd::set1(1.0f / 127.0f)));
}

// Blocks [first, first + blocks) of kPanels panels into scratch; `first` starts a run.
template <class F, int kPanels>
inline void round_panels(const MatmulArgs& args, int32_t panel, int32_t first, int32_t blocks,
                         const GroupScratch<kPanels>& to) {
  const Matrix& w = *args.weights;
  for (int n = 0; n < kPanels; ++n) {
    const uint8_t* data =
        w.data + (panel + n) * w.panel_bytes + static_cast<int64_t>(first / F::kRun) * F::kRunBytes;
    Block<F> group[kGroupBlocks];
    for_blocks<F>(data, blocks, w.codebook, [&](const Block<F>& block, int32_t b) WOK_INLINE {
      group[b % kGroupBlocks] = block;
      if (b % kGroupBlocks == kGroupBlocks - 1 || b == blocks - 1) {
        round_group<F, kPanels>(group, b % kGroupBlocks + 1, b / kGroupBlocks, n, to);
      }
    });
  }
}

// sums[m][n * kW..] = row `row + m` times panel n, over `columns` columns from `first_column` on.
// The sums live in memory: the registers are for the integer sums.
template <int kRows, int kPanels>
[[gnu::noinline]] void group_tile(const Activations& x, int32_t row, int32_t first_column,
                                  int32_t columns, const GroupScratch<kPanels>& from,
                                  float (*sums)[kPanels * kW]) {
  const uint8_t* a =
      reinterpret_cast<const uint8_t*>(x.q) + static_cast<int64_t>(row) * x.cols + first_column;
  const float* scale =
      x.scale + static_cast<int64_t>(row) * (x.cols / kBlockColumns) + first_column / kGroupColumns;
  const int64_t stride = x.cols, scale_stride = x.cols / kBlockColumns;
  const int8_t* w = from.codes;
  unrolled<kRows * kPanels>(
      [&](auto i) WOK_INLINE { Simd::store(&sums[i / kPanels][i % kPanels * kW], Simd::zero()); });
  for (int32_t g = 0; g * kGroupColumns < columns; ++g) {
    Int acc[kRows][kPanels];
    unrolled<kRows * kPanels>([&](auto i) WOK_INLINE {
      acc[i / kPanels][i % kPanels] = Simd::load_int(from.bias + (g * kPanels + i % kPanels) * kW);
    });
    const int32_t left = (columns - g * kGroupColumns) / 4;
    const int32_t steps = left < kGroupSteps ? left : kGroupSteps;
    int32_t s = steps;  // at least one; a loop that might not run costs GCC registers
    do {
      Bytes codes[kPanels];
      unrolled<kPanels>([&](auto n)
                            WOK_INLINE { codes[n] = Simd::load_bytes(w + n * kVectorBytes); });
      unrolled<kRows>([&](auto m) WOK_INLINE {
        const Int four = Simd::broadcast_int(a + m * stride);
        unrolled<kPanels>([&](auto n)
                              WOK_INLINE { acc[m][n] = Simd::dot(acc[m][n], four, codes[n]); });
      });
      a += 4;
      w += kPanels * kVectorBytes;
    } while (--s > 0);
    unrolled<kRows>([&](auto m) WOK_INLINE {
      const Float da = Simd::set1(scale[m * scale_stride + g]);
      unrolled<kPanels>([&](auto n) WOK_INLINE {
        const Float d = Simd::mul(Simd::load(from.scale + (g * kPanels + n) * kW), da);
        float* sum = &sums[m][n * kW];
        Simd::store(sum, Simd::fma(Simd::to_float(acc[m][n]), d, Simd::load(sum)));
      });
    });
  }
}

template <class F, int kPanels>
void group_panels(const MatmulArgs& args, int32_t panel, int32_t begin, int32_t end) {
  const Activations& x = *args.x;
  const GroupScratch<kPanels> scratch(args.scratch);
  MatmulArgs out = args;
  for (int32_t first = 0; first < x.cols; first += kGroupBlockColumns) {
    const int32_t columns =
        x.cols - first < kGroupBlockColumns ? x.cols - first : kGroupBlockColumns;
    round_panels<F, kPanels>(args, panel, first / kBlockColumns, columns / kBlockColumns, scratch);
    for_row_tiles<kPromptTileRows>(begin, end, [&]<int kRows>(int32_t row) {
      alignas(64) float sums[kRows][kPanels * kW];
      group_tile<kRows, kPanels>(x, row, first, columns, scratch, sums);
      for (int m = 0; m < kRows; ++m) {
        for (int n = 0; n < kPanels; ++n)
          write_out(out, panel + n, row + m, Simd::load(&sums[m][n * kW]));
      }
    });
    out.accumulate = true;
  }
}

template <class F>
void group_matmul(const MatmulArgs& args, int32_t begin, int32_t end) {
  int32_t p = args.panel_begin;
  for (; p + kPanelsPerTask <= args.panel_end; p += kPanelsPerTask) {
    group_panels<F, kPanelsPerTask>(args, p, begin, end);
  }
  for (; p < args.panel_end; ++p) group_panels<F, 1>(args, p, begin, end);
}

void quantize_group(const float* x, int32_t n, uint8_t* q, float* scale) {
  for (int32_t first = 0; first < n; first += kGroupColumns) {
    const int32_t len = n - first < kGroupColumns ? n - first : kGroupColumns;
    Float largest = Simd::zero();
    for (int32_t i = 0; i < len; i += kW) {
      largest = Simd::max(largest, Simd::abs(Simd::load(x + first + i)));
    }
    const float absmax = Simd::reduce_max(largest);
    const Float inverse = Simd::set1(absmax > 0 ? 127.0f / absmax : 0.0f);
    scale[first / kGroupColumns] = absmax / 127.0f;
    for (int32_t i = 0; i < len; i += kW) {
      const Float code = Simd::round(Simd::mul(Simd::load(x + first + i), inverse));
      Simd::store_uint8(q + first + i, Simd::add(code, Simd::set1(128.0f)));
    }
  }
}

}  // namespace
}  // namespace wok
