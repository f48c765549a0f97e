// Packed integer panels times the exact rows of the activations. The operations on an output are
// the same for one row and for many, so batching never changes a result: a dot product of a block
// in integers, the zero point's share with it, then times both scales, plus the weights' min times
// the sum of the activations. Beyond one tile of rows panels are first unpacked to bytes in
// scratch, so that taking codes apart is paid once a panel and not once a tile.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/body/int_blocks.h"
#include "kernels/body/row_tiles.h"
#include "kernels/body/unroll.h"

namespace wok {
namespace {

// What the dot product of a part of a block begins with: -zero * (sum of the activations' codes).
template <class F>
WOK_INLINE inline Int zero_share(const ActivationBlock& x, int part) {
  if constexpr (F::kZero == 0) {
    return Simd::zero_int();
  } else {
    constexpr int kPower = std::countr_zero(static_cast<unsigned>(F::kZero));
    static_assert(F::kZero == 1 << kPower);
    constexpr int kBits = kPower - (F::kHalves ? 5 : 3);  // of what is there already
    const Int share = Simd::set1_int(F::kHalves ? x.minus32[part] : x.minus8);
    if constexpr (kBits == 0) return share;
    return Simd::template times_power<kBits>(share);
  }
}

// total += a dot product times scale and the activations' scale, plus min times their sum.
template <class F>
WOK_INLINE inline Float add_dot(Int dot, Float scale, Float min, const ActivationBlock& x, int part,
                                Float total) {
  total = Simd::fma(Simd::to_float(dot), Simd::mul(scale, Simd::set1(x.scale)), total);
  if constexpr (F::kHasMin) {
    const float sum =
        F::kHalves ? x.scale * static_cast<float>(x.minus32[part]) * (-1.0f / 32) : x.sum;
    total = Simd::fma(min, Simd::set1(sum), total);
  }
  return total;
}

// acc[m] += block times columns of row `row + m`.
template <class F, int kRows>
WOK_INLINE inline void add_block(const Block<F>& block, const Activations& x, int32_t b,
                                 int32_t row, Float* acc) {
  constexpr int kParts = F::kHalves ? 2 : 1, kGroups = kBlockGroups / kParts;
  const int64_t at = static_cast<int64_t>(b) * x.exact_rows + row;
  const int8_t* q = x.q + at * kBlockColumns;
  const ActivationBlock* blocks = x.blocks + at;
  unrolled<kRows>([&](auto m) WOK_INLINE {
    unrolled<kParts>([&](auto part) WOK_INLINE {
      const Int start = zero_share<F>(blocks[m], part);
      const Bytes* w = block.w + part * kGroups;
      const int8_t* a = q + m * kBlockColumns + part * kGroups * 4;
      const Factors& f = block.factors[part];
      Int dot;
      if constexpr (F::kSigned) {
        dot = Simd::template dot_signed<kGroups>(start, w, a);
      } else {
        dot = Simd::template dot_unsigned<F::Codes::kDepth, kGroups>(start, w, a);
      }
      acc[m] = add_dot<F>(dot, f.scale, f.min, blocks[m], part, acc[m]);
    });
  });
}

// Beyond one tile of rows: kExactPanels panels beside each other are unpacked kExactColumns at a
// time into scratch that stays in L1 while all rows pass. A tile's integer and float sums fill the
// registers: an output is touched in memory only once per kExactColumns.
constexpr int kExactBlocks = kExactColumns / kBlockColumns;
constexpr int kExactTileRows = Simd::kExactTileRows;
constexpr int32_t kFetchTiles =
    4;  // tiles that have the next columns fetched, if there are as many

// All that a tile has to know of the family whose codes were unpacked for it.
template <bool kHasHalves, bool kHasMins, int kZeroCode>
struct ExactForm {
  static constexpr bool kHalves = kHasHalves;
  static constexpr bool kHasMin = kHasMins;
  static constexpr int kZero = kZeroCode;
  static constexpr int kParts = kHalves ? 2 : 1;
};
template <class F>
using FormOf = ExactForm<F::kHalves, F::kHasMin, F::kZero>;

template <class Form>
struct ExactScratch {
  static constexpr int kParts = Form::kParts;
  static constexpr int kFactors = kParts * (Form::kHasMin ? 2 : 1);
  static constexpr int kCodeBytes = kBlockGroups * kExactPanels * kVectorBytes;  // of a block
  static constexpr int kFactorFloats = kFactors * kExactPanels * kW;
  static constexpr int kSumFloats = kExactPanels * kW;  // of a row
  uint8_t* codes;  // [blocks, kBlockGroups, kExactPanels] vectors
  float* factors;  // [blocks, kFactors, kExactPanels] vectors: the parts' scales, then their mins
  float* sums;     // [rows, kExactPanels] vectors

  explicit ExactScratch(uint8_t* at)
      : codes(at),
        factors(reinterpret_cast<float*>(at + kExactBlocks * kCodeBytes)),
        sums(factors + kExactBlocks * kFactorFloats) {}

  template <class F>
  void fill(const uint8_t* run, int32_t blocks, int panel, const int8_t* codebook) const {
    for_blocks<F>(run, blocks, codebook, [&](const Block<F>& block, int32_t b) WOK_INLINE {
      uint8_t* to = codes + b * kCodeBytes + panel * kVectorBytes;
      unrolled<kBlockGroups>([&](auto v) WOK_INLINE {
        Simd::store_bytes(to + v * kExactPanels * kVectorBytes,
                          F::kSigned ? Simd::offset_codes(block.w[v]) : block.w[v]);
      });
      float* f = factors + b * kFactorFloats + panel * kW;
      unrolled<kParts>([&](auto part) WOK_INLINE {
        Simd::store(f + part * kExactPanels * kW, block.factors[part].scale);
        if constexpr (F::kHasMin) {
          Simd::store(f + (kParts + part) * kExactPanels * kW, block.factors[part].min);
        }
      });
    });
  }
};

// Where the packed bytes lie that are unpacked next: a tile has them fetched, some lines of each
// panel a block, while its multiplications keep the core busy.
struct FetchNext {
  const uint8_t* at = nullptr;
  int64_t panel_bytes = 0;
  int32_t lines = 0;  // a block and panel
};

// Blocks [first, first + blocks), which are in scratch, for rows row + [0, kRows): added to `sums`,
// which the first blocks do not read; the last ones write the output instead.
template <class Form, int kRows>
[[gnu::noinline]] void exact_tile(const MatmulArgs& args, int32_t panel, int32_t row, int32_t first,
                                  int32_t blocks, const ExactScratch<Form>& from, float* sums,
                                  FetchNext next) {
  const Activations& x = *args.x;
  constexpr int kPanels = kExactPanels, kOutputs = kRows * kPanels;
  constexpr int kParts = Form::kParts, kGroups = kBlockGroups / kParts;
  const uint8_t* w = from.codes;
  const float* factors = from.factors;
  const int64_t at = static_cast<int64_t>(first) * x.exact_rows + row;
  const int8_t* q = x.q + at * kBlockColumns;
  const ActivationBlock* xb = x.blocks + at;
  Float total[kOutputs];
  unrolled<kOutputs>(
      [&](auto i) WOK_INLINE { total[i] = first == 0 ? Simd::zero() : Simd::load(sums + i * kW); });
  int32_t b = 0;
  do {  // at least one; a loop that might not run costs GCC registers
    for (int32_t line = 0; line < next.lines; ++line, next.at += 64) {
      unrolled<kPanels>([&](auto n)
                            WOK_INLINE { __builtin_prefetch(next.at + n * next.panel_bytes); });
    }
    Int dots[kOutputs];
    unrolled<kParts>([&](auto part) WOK_INLINE {
      unrolled<kRows>([&](auto m) WOK_INLINE {
        const Int start = zero_share<Form>(xb[m], part);
        unrolled<kPanels>([&](auto n) WOK_INLINE { dots[m * kPanels + n] = start; });
      });
      unrolled<kGroups>([&](auto g) WOK_INLINE {
        constexpr int kGroup = part * kGroups + g;
        Bytes codes[kPanels];
        unrolled<kPanels>([&](auto n) WOK_INLINE {
          codes[n] = Simd::load_bytes(w + (kGroup * kPanels + n) * kVectorBytes);
        });
        unrolled<kRows>([&](auto m) WOK_INLINE {
          const Int four = Simd::broadcast_codes(q + m * kBlockColumns + kGroup * 4);
          unrolled<kPanels>([&](auto n) WOK_INLINE {
            Int& dot = dots[m * kPanels + n];
            dot = Simd::dot_codes(dot, codes[n], four);
          });
        });
      });
      unrolled<kPanels>([&](auto n) WOK_INLINE {
        const Float scale = Simd::load(factors + (part * kPanels + n) * kW);
        const int min_at = Form::kHasMin ? kParts + part : 0;
        const Float min = Simd::load(factors + (min_at * kPanels + n) * kW);
        unrolled<kRows>([&](auto m) WOK_INLINE {
          Float& sum = total[m * kPanels + n];
          sum = add_dot<Form>(dots[m * kPanels + n], scale, min, xb[m], part, sum);
        });
      });
    });
    w += ExactScratch<Form>::kCodeBytes;
    factors += ExactScratch<Form>::kFactorFloats;
    q += static_cast<int64_t>(x.exact_rows) * kBlockColumns;
    xb += x.exact_rows;
  } while (++b < blocks);
  if (first + blocks < x.cols / kBlockColumns) {
    unrolled<kOutputs>([&](auto i) WOK_INLINE { Simd::store(sums + i * kW, total[i]); });
    return;
  }
  unrolled<kOutputs>([&](auto i) WOK_INLINE {
    write_out(args, panel + i % kPanels, row + i / kPanels, total[i]);
  });
}

template <class F>
void exact_panels(const MatmulArgs& args, int32_t panel, int32_t begin, int32_t end) {
  const Matrix& w = *args.weights;
  const int32_t blocks = w.cols / kBlockColumns;
  using Form = FormOf<F>;
  const ExactScratch<Form> scratch(args.scratch);
  const auto packed = [&](int32_t first) {
    return w.data + panel * w.panel_bytes + static_cast<int64_t>(first / F::kRun) * F::kRunBytes;
  };
  constexpr int32_t kLines = (kExactBlocks / F::kRun) * F::kRunBytes / 64;  // of a panel's part
  // Tiles of about the same height; each has a share of the next part's lines fetched.
  const int32_t tiles = (end - begin + kExactTileRows - 1) / kExactTileRows;
  for (int32_t first = 0; first < blocks; first += kExactBlocks) {
    const int32_t count = blocks - first < kExactBlocks ? blocks - first : kExactBlocks;
    for (int n = 0; n < kExactPanels; ++n) {
      scratch.template fill<F>(packed(first) + n * w.panel_bytes, count, n, w.codebook);
    }
    FetchNext next;
    const bool more = first + count < blocks;
    next.at = more ? packed(first + count) : packed(0) + kExactPanels * w.panel_bytes;
    next.panel_bytes = static_cast<int64_t>(w.panel_bytes);
    const int32_t places = (tiles < kFetchTiles ? tiles : kFetchTiles) * count;
    next.lines = (kLines + places - 1) / places;
    const uint8_t* fetched = next.at + kLines * 64;
    for_even_tiles<kExactTileRows>(begin, end, [&]<int kRows>(int32_t row) {
      if (next.at >= fetched) next.lines = 0;
      exact_tile<Form, kRows>(args, panel, row, first, count, scratch,
                              scratch.sums + (row - begin) * ExactScratch<Form>::kSumFloats, next);
      next.at += static_cast<int64_t>(next.lines) * count * 64;
    });
  }
}

// What is computed straight from the packed codes. Several panels side by side are several streams:
// Intel's prefetchers keep more of the memory busy for them, AMD's less.
template <class F, Streams kStreams>
struct StreamTile {
  static constexpr bool kOne = kStreams == Streams::kOne;
  static constexpr int kPanels = kOne || F::kRare ? 1 : Simd::kStreamPanels;
  static constexpr int kRows = kOne && !F::kRare ? Simd::kOneStreamRows : Simd::kStreamRows;
  static_assert(kPanelsPerTask % kPanels == 0);  // a task streams whole groups
  // Rows up to which a family is not unpacked: a narrow panel of one stream stays in the first
  // cache for a second tile of rows.
  static constexpr int kMostRows = kOne && F::Codes::kVectors <= 5 ? 2 * kRows : kRows;
};

// kPanels panels by kRows rows.
template <class F, int kPanels, int kRows>
[[gnu::noinline]] void exact_streams(const MatmulArgs& args, int32_t panel, int32_t row) {
  const Matrix& w = *args.weights;
  const int32_t blocks = w.cols / kBlockColumns;
  const auto panel_bytes = static_cast<int64_t>(w.panel_bytes);
  Float acc[kPanels][kRows];
  unrolled<kPanels * kRows>([&](auto i) WOK_INLINE { acc[i / kRows][i % kRows] = Simd::zero(); });
  const uint8_t* run = w.data + panel * panel_bytes;
  // Past a panel's end comes the next of these panels, long read: what follows then is the panel
  // kPanels on, of this thread's next task.
  constexpr int32_t kAheadBlocks = kAheadBytes * F::kRun / F::kRunBytes;
  for (int32_t b = 0; b < blocks; run += F::kRunBytes) {
    for (int i = 0; i < F::kRun && b < blocks; ++i, ++b) {
      const int64_t ahead =
          kAheadBytes + (b + kAheadBlocks < blocks ? 0 : (kPanels - 1) * panel_bytes);
      unrolled<kPanels>([&](auto n) WOK_INLINE {
        Block<F> block;
        load_block(run + n * panel_bytes, i, w.codebook, block, ahead);
        add_block<F, kRows>(block, *args.x, b, row, acc[n]);
      });
    }
  }
  unrolled<kPanels * kRows>([&](auto i) WOK_INLINE {
    write_out(args, panel + i / kRows, row + i % kRows, acc[i / kRows][i % kRows]);
  });
}

template <class F, Streams kStreams>
void exact_matmul(const MatmulArgs& args, int32_t begin, int32_t end) {
  using Tile = StreamTile<F, kStreams>;
  int32_t p = args.panel_begin;
  if constexpr (Simd::kHasVnni) {
    if (end - begin > Tile::kMostRows) {
      for (; p + kExactPanels <= args.panel_end; p += kExactPanels) {
        for (int32_t row = begin; row < end; row += kExactRows) {
          exact_panels<F>(args, p, row, end - row < kExactRows ? end : row + kExactRows);
        }
      }
    }
  }
  for (; p + Tile::kPanels <= args.panel_end; p += Tile::kPanels) {
    for_even_tiles<Tile::kRows>(begin, end, [&]<int kRows>(int32_t row) {
      exact_streams<F, Tile::kPanels, kRows>(args, p, row);
    });
  }
  for (; p < args.panel_end; ++p) {
    for_even_tiles<Tile::kRows>(
        begin, end, [&]<int kRows>(int32_t row) { exact_streams<F, 1, kRows>(args, p, row); });
  }
}

}  // namespace
}  // namespace wok
