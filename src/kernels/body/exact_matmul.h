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

// Beyond one tile of rows: a task's panels are unpacked kExactColumns at a time into scratch that
// stays in L1 while all rows pass, several panels beside each other, so that one load of an
// activation serves all of them.
constexpr int kExactBlocks = kExactColumns / kBlockColumns;
constexpr int kExactTileRows = kW == 16 ? 6 : 2;

template <class F, int kPanels>
struct ExactScratch {
  static constexpr int kFactors = F::kHalves ? 4 : 2;
  uint8_t* codes;  // [blocks, kBlockGroups, kPanels] vectors
  float* factors;  // [blocks, kFactors, kPanels] vectors: scale and min, of each half
  float* sums;     // [rows, kPanels] vectors

  explicit ExactScratch(uint8_t* at)
      : codes(at),
        factors(
            reinterpret_cast<float*>(at + kExactBlocks * kBlockGroups * kPanels * kVectorBytes)),
        sums(factors + kExactBlocks * 4 * kPanels * kW) {}

  void fill(const uint8_t* run, int32_t blocks, int panel) const {
    for_blocks<F>(run, blocks, [&](const Block<F>& block, int32_t b) WOK_INLINE {
      uint8_t* to = codes + (b * kBlockGroups * kPanels + panel) * kVectorBytes;
      unrolled<kBlockGroups>([&](auto v) WOK_INLINE {
        Simd::store_bytes(to + v * kPanels * kVectorBytes,
                          F::kSigned ? Simd::offset_codes(block.w[v]) : block.w[v]);
      });
      float* f = factors + (b * kFactors * kPanels + panel) * kW;
      unrolled<kFactors / 2>([&](auto h) WOK_INLINE {
        Simd::store(f + 2 * h * kPanels * kW, block.factors[h].scale);
        Simd::store(f + (2 * h + 1) * kPanels * kW, block.factors[h].min);
      });
    });
  }
};

// scratch.sums of rows row + [0, kRows) += blocks [first, first + blocks), which are in scratch.
// The same float operations on each output as add_block's.
template <class F, int kRows, int kPanels>
inline void exact_tile(const Activations& x, int32_t row, int32_t first, int32_t blocks,
                       const ExactScratch<F, kPanels>& from, float* sums) {
  constexpr int kParts = F::kHalves ? 2 : 1, kSteps = kBlockGroups / kParts;
  const uint8_t* w = from.codes;
  const float* factors = from.factors;
  int32_t b = 0;
  do {
    const int64_t at = static_cast<int64_t>(first + b) * x.exact_rows + row;
    const int8_t* q = x.q + at * kBlockColumns;
    unrolled<kParts>([&](auto part) WOK_INLINE {
      Int acc[kRows][kPanels];
      unrolled<kRows * kPanels>(
          [&](auto i) WOK_INLINE { acc[i / kPanels][i % kPanels] = Simd::zero_int(); });
      const uint8_t* codes_at = w + part * kSteps * kPanels * kVectorBytes;
      const int8_t* four_at = q + part * kSteps * 4;
      int step = 0;
      do {
        Bytes codes[kPanels];
        unrolled<kPanels>(
            [&](auto n) WOK_INLINE { codes[n] = Simd::load_bytes(codes_at + n * kVectorBytes); });
        unrolled<kRows>([&](auto m) WOK_INLINE {
          const Int four = Simd::broadcast_codes(four_at + m * kBlockColumns);
          unrolled<kPanels>(
              [&](auto n) WOK_INLINE { acc[m][n] = Simd::dot_codes(acc[m][n], codes[n], four); });
        });
        codes_at += kPanels * kVectorBytes;
        four_at += 4;
      } while (++step < kSteps);
      unrolled<kRows>([&](auto m) WOK_INLINE {
        const Float da = Simd::set1(x.scale[at + m]);
        const Float sum = Simd::set1(F::kHalves ? x.half_sum[2 * (at + m) + part] : x.sum[at + m]);
        unrolled<kPanels>([&](auto n) WOK_INLINE {
          const Float scale = Simd::load(factors + (2 * part * kPanels + n) * kW);
          const Float min = Simd::load(factors + ((2 * part + 1) * kPanels + n) * kW);
          float* out = sums + (m * kPanels + n) * kW;
          const Float dot = Simd::to_float(acc[m][n]);
          const Float scaled = Simd::fma(dot, Simd::mul(scale, da), Simd::load(out));
          Simd::store(out, Simd::fma(min, sum, scaled));
        });
      });
    });
    w += kBlockGroups * kPanels * kVectorBytes;
    factors += ExactScratch<F, kPanels>::kFactors * kPanels * kW;
  } while (++b < blocks);
}

template <class F, int kPanels>
void exact_panels(const MatmulArgs& args, int32_t panel, int32_t begin, int32_t end) {
  const Matrix& w = *args.weights;
  const int32_t blocks = w.cols / kBlockColumns;
  const ExactScratch<F, kPanels> scratch(args.scratch);
  constexpr int kSumFloats = kPanels * kW;
  for (int64_t i = 0; i < static_cast<int64_t>(end - begin) * kSumFloats; i += kW) {
    Simd::store(scratch.sums + i, Simd::zero());
  }
  for (int32_t first = 0; first < blocks; first += kExactBlocks) {
    const int32_t count = blocks - first < kExactBlocks ? blocks - first : kExactBlocks;
    for (int n = 0; n < kPanels; ++n) {
      scratch.fill(w.data + (panel + n) * w.panel_bytes +
                       static_cast<int64_t>(first / F::kRun) * F::kRunBytes,
                   count, n);
    }
    for_row_tiles<kExactTileRows>(begin, end, [&]<int kRows>(int32_t row) {
      exact_tile<F, kRows, kPanels>(*args.x, row, first, count, scratch,
                                    scratch.sums + (row - begin) * kSumFloats);
    });
  }
  for (int32_t row = begin; row < end; ++row) {
    for (int n = 0; n < kPanels; ++n) {
      write_out(args, panel + n, row,
                Simd::load(scratch.sums + ((row - begin) * kPanels + n) * kW));
    }
  }
}

// One panel after the other, kTileRows rows at a time, straight from the packed codes.
template <class F>
void exact_panel_rows(const MatmulArgs& args, int32_t panel, int32_t begin, int32_t end) {
  const Matrix& w = *args.weights;
  const int32_t blocks = w.cols / kBlockColumns;
  const uint8_t* data = w.data + panel * w.panel_bytes;
  for_row_tiles<kTileRows>(begin, end, [&]<int kRows>(int32_t row) {
    Float acc[kRows];
    for (int m = 0; m < kRows; ++m) acc[m] = Simd::zero();
    for_blocks<F>(data, blocks, [&](const Block<F>& block, int32_t b) WOK_INLINE {
      add_block<F, kRows>(block, *args.x, b, row, acc);
    });
    for (int m = 0; m < kRows; ++m) write_out(args, panel, row + m, acc[m]);
  });
}

template <class F>
void exact_matmul(const MatmulArgs& args, int32_t begin, int32_t end) {
  int32_t p = args.panel_begin;
  if (Simd::kHasVnni && end - begin > kTileRows) {
    for (; p + kPanelsPerTask <= args.panel_end; p += kPanelsPerTask) {
      for (int32_t row = begin; row < end; row += kExactRows) {
        exact_panels<F, kPanelsPerTask>(args, p, row,
                                        end - row < kExactRows ? end : row + kExactRows);
      }
    }
  }
  for (; p < args.panel_end; ++p) exact_panel_rows<F>(args, p, begin, end);
}

}  // namespace
}  // namespace wok
