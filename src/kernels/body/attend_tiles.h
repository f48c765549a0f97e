// The two products of attention, for tiles of a few query rows and kAttendTile positions, over the
// small vector type Simd. Keys and values come either from the pages' own two bytes an element, for
// few rows, or from a copy in floats that many rows share. Sums run over dimensions and positions
// in order, whichever it is and whatever rows are beside.
#pragma once

#include <cstdint>

#include "kernels/body/elementwise.h"
#include "kernels/body/unroll.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

struct HalfKv {
  static Float load(const void* p) { return Simd::load_half(p); }
  static void store(void* p, Float v) { Simd::store_half(p, v); }
};
struct Bf16Kv {
  static Float load(const void* p) { return Simd::load_bf16(p); }
  static void store(void* p, Float v) { Simd::store_bf16(p, v); }
};

constexpr int kAttendTile = 64;  // positions whose keys, then values, pass all rows
constexpr int kTilePages = kAttendTile / kPageTokens;
// Rows and vectors whose sums stay in registers: 24 of 32 with AVX-512, 12 of 16 otherwise.
constexpr int kRowTile = 6;
constexpr int kSumVectors = kW == 16 ? 4 : 2;

// Floats from one row of scores to the next: rows a power of two apart would share few cache sets.
constexpr int kScoreStride = kAttendSplit + 16;

// The pages of one tile, keys or values.
struct TilePages {
  const uint8_t* page[kTilePages];
};

template <class Kv>
struct PageKeys {
  TilePages pages;
  TilePages ahead;  // wanted soon: pages lie anywhere, where no hardware would look for them

  void fetch(int32_t d) const {
    if (d % 2 != 0) return;
    for (int p = 0; p < kTilePages; ++p) {
      __builtin_prefetch(ahead.page[p] + static_cast<size_t>(d) * kPageTokens * 2);
    }
  }
  Float load(int32_t d, int position) const {
    return Kv::load(pages.page[position / kPageTokens] +
                    (static_cast<size_t>(d) * kPageTokens + position % kPageTokens) * 2);
  }
};

struct FloatKeys {
  const float* panel;  // [head_dim, kAttendTile]

  void fetch(int32_t) const {}
  Float load(int32_t d, int position) const {
    return Simd::load(panel + static_cast<size_t>(d) * kAttendTile + position);
  }
};

template <class Kv>
struct PageValues {
  TilePages pages;
  TilePages ahead;
  int32_t head_dim;

  void fetch(int32_t position) const {
    const size_t row_bytes = static_cast<size_t>(head_dim) * 2;
    const uint8_t* row = ahead.page[position / kPageTokens] + position % kPageTokens * row_bytes;
    for (size_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(row + at);
  }
  Float load(int32_t position, int32_t d) const {
    return Kv::load(pages.page[position / kPageTokens] +
                    (static_cast<size_t>(position % kPageTokens) * head_dim + d) * 2);
  }
};

struct FloatValues {
  const float* panel;  // [kAttendTile, head_dim]
  int32_t head_dim;

  void fetch(int32_t) const {}
  Float load(int32_t position, int32_t d) const {
    return Simd::load(panel + static_cast<size_t>(position) * head_dim + d);
  }
};

// scores[r][0..kAttendTile) = q[r] · keys. q: [head_dim, kRowTile]; rows of scores are kScoreStride
// apart.
template <int kRows, class Keys>
inline void score_tile(const Keys& keys, const float* q, int32_t head_dim, float* scores) {
  constexpr int kVectors = kRows <= 2 ? 4 : kSumVectors;
  for (int column = 0; column < kAttendTile; column += kVectors * kW) {
    Float sum[kRows * kVectors];
    unrolled<kRows * kVectors>([&](auto i) WOK_INLINE { sum[i] = Simd::zero(); });
    for (int32_t d = 0; d < head_dim; ++d) {
      if (column == 0) keys.fetch(d);
      Float k[kVectors];
      unrolled<kVectors>([&](auto v) WOK_INLINE { k[v] = keys.load(d, column + v * kW); });
      unrolled<kRows>([&](auto r) WOK_INLINE {
        const Float qd = Simd::set1(q[d * kRowTile + r]);
        unrolled<kVectors>([&](auto v) WOK_INLINE {
          sum[r * kVectors + v] = Simd::fma(qd, k[v], sum[r * kVectors + v]);
        });
      });
    }
    unrolled<kRows>([&](auto r) WOK_INLINE {
      unrolled<kVectors>([&](auto v) WOK_INLINE {
        Simd::store(scores + r * kScoreStride + column + v * kW, sum[r * kVectors + v]);
      });
    });
  }
}

template <int kRows, int kVectors, class Values>
inline void weigh_columns(const Values& values, const float* weights, int begin, int end,
                          int32_t head_dim, int32_t d, float* out) {
  Float sum[kRows * kVectors];
  unrolled<kRows>([&](auto r) WOK_INLINE {
    unrolled<kVectors>([&](auto v) WOK_INLINE {
      sum[r * kVectors + v] = Simd::load(out + r * head_dim + d + v * kW);
    });
  });
  for (int t = begin; t < end; ++t) {
    if (d == 0) values.fetch(t);
    Float value[kVectors];
    unrolled<kVectors>([&](auto v) WOK_INLINE { value[v] = values.load(t, d + v * kW); });
    unrolled<kRows>([&](auto r) WOK_INLINE {
      const Float weight = Simd::set1(weights[r * kScoreStride + t]);
      unrolled<kVectors>([&](auto v) WOK_INLINE {
        sum[r * kVectors + v] = Simd::fma(weight, value[v], sum[r * kVectors + v]);
      });
    });
  }
  unrolled<kRows>([&](auto r) WOK_INLINE {
    unrolled<kVectors>([&](auto v) WOK_INLINE {
      Simd::store(out + r * head_dim + d + v * kW, sum[r * kVectors + v]);
    });
  });
}

// out[r] += sum over positions t in [begin, end) of a tile of weights[r][t] * values[t]. Rows of
// out are head_dim apart, rows of weights kScoreStride.
template <int kRows, class Values>
inline void weigh_tile(const Values& values, const float* weights, int begin, int end,
                       int32_t head_dim, float* out) {
  constexpr int kVectors = kRows <= 2 ? 4 : kSumVectors;
  int32_t d = 0;
  for (; d + kVectors * kW <= head_dim; d += kVectors * kW) {
    weigh_columns<kRows, kVectors>(values, weights, begin, end, head_dim, d, out);
  }
  for (; d < head_dim; d += kW) {
    weigh_columns<kRows, 1>(values, weights, begin, end, head_dim, d, out);
  }
}

template <class Kv>
inline void widen_keys(const TilePages& pages, int32_t head_dim, float* panel) {
  for (int p = 0; p < kTilePages; ++p) {
    for (int32_t d = 0; d < head_dim; ++d) {
      for (int i = 0; i < kPageTokens; i += kW) {
        Simd::store(panel + static_cast<size_t>(d) * kAttendTile + p * kPageTokens + i,
                    Kv::load(pages.page[p] + (static_cast<size_t>(d) * kPageTokens + i) * 2));
      }
    }
  }
}

template <class Kv>
inline void widen_values(const TilePages& pages, int32_t head_dim, float* panel) {
  const int32_t elements = kPageTokens * head_dim;
  for (int p = 0; p < kTilePages; ++p) {
    for (int32_t i = 0; i < elements; i += kW) {
      Simd::store(panel + static_cast<size_t>(p) * elements + i,
                  Kv::load(pages.page[p] + static_cast<size_t>(i) * 2));
    }
  }
}

// Calls run.template operator()<rows>() with the count of rows as a constant, 1 to kRowTile.
template <int kMost = kRowTile, class Run>
inline void with_rows(int rows, const Run& run) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return with_rows<kMost - 1>(rows, run);
  }
  run.template operator()<kMost>();
}

}  // namespace
}  // namespace wok
