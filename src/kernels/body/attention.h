// Flash attention over pages (online softmax) and the KV store, over the small vector type Simd.
// Tiles are the same absolute runs of kAttendTile positions for every row, and a masked position
// adds exactly nothing, so a row's result does not depend on the rows beside it.
#pragma once

#include <cstdint>

#include "kernels/body/elementwise.h"
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

template <class Kv>
void store_kv(const KvView& kv, const int32_t* page_table, int32_t position, int32_t head_dim,
              const float* key, const float* value) {
  uint8_t* page = kv.pool + static_cast<size_t>(page_table[position / kPageTokens]) * kv.page_bytes;
  const int32_t slot = position % kPageTokens;
  uint8_t* keys = page + kv.key_offset + slot * 2;
  uint8_t* values = page + kv.value_offset + static_cast<size_t>(slot) * head_dim * 2;
  for (int32_t d = 0; d < head_dim; d += kW) {
    uint16_t narrow[kW];
    Kv::store(narrow, Simd::load(key + d));
    for (int i = 0; i < kW; ++i) {
      __builtin_memcpy(keys + static_cast<size_t>(d + i) * kPageTokens * 2, &narrow[i], 2);
    }
    Kv::store(values + static_cast<size_t>(d) * 2, Simd::load(value + d));
  }
}

constexpr int kPageVectors = kPageTokens / kW;
// Rows that pass a page together, and sums kept apart per row: enough independent additions to fill
// the FMA pipes, few enough to stay in registers (16 of them, 32 with AVX-512).
constexpr int kRowTile = kW == 16 ? 8 : 4;
constexpr int kChains = kW == 16 ? 2 : 1;
constexpr int kValueVectors = 2;

// The pages of one tile of positions.
struct TilePages {
  const uint8_t* keys[kAttendTile / kPageTokens];
  const uint8_t* values[kAttendTile / kPageTokens];
  int pages, positions;
};

inline TilePages tile_at(const AttendArgs& args, int32_t base, int32_t high) {
  TilePages tile;
  tile.positions = high - base < kAttendTile ? high - base : kAttendTile;
  tile.pages = (tile.positions + kPageTokens - 1) / kPageTokens;
  for (int p = 0; p < kAttendTile / kPageTokens; ++p) {
    // Past the end the last page stands in, so that every entry may be prefetched.
    const int32_t index = base / kPageTokens + (p < tile.pages ? p : tile.pages - 1);
    const uint8_t* page =
        args.kv.pool + static_cast<size_t>(args.page_table[index]) * args.kv.page_bytes;
    tile.keys[p] = page + args.kv.key_offset;
    tile.values[p] = page + args.kv.value_offset;
  }
  return tile;
}

// scores[r][0..16) = q[r] · keys of one page; even and odd dimensions apart where there are chains.
// `ahead`: keys that will be wanted soon.
template <class Kv, int kRows>
inline void page_scores(const uint8_t* keys, const uint8_t* ahead, const float* const* q,
                        int32_t head_dim, float scale, float (*scores)[kAttendTile], int column) {
  Float acc[kRows][kChains][kPageVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kChains; ++c) {
      for (int v = 0; v < kPageVectors; ++v) acc[r][c][v] = Simd::zero();
    }
  }
  for (int32_t d = 0; d < head_dim; d += kChains) {
    // Pages lie anywhere: the hardware cannot guess where the next tile's keys are.
    if (d % 2 == 0) __builtin_prefetch(ahead + static_cast<size_t>(d) * kPageTokens * 2);
    for (int c = 0; c < kChains; ++c) {
      Float k[kPageVectors];
      for (int v = 0; v < kPageVectors; ++v) {
        k[v] = Kv::load(keys + (static_cast<size_t>(d + c) * kPageTokens + v * kW) * 2);
      }
      for (int r = 0; r < kRows; ++r) {
        const Float qd = Simd::set1(q[r][d + c]);
        for (int v = 0; v < kPageVectors; ++v) acc[r][c][v] = Simd::fma(qd, k[v], acc[r][c][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kPageVectors; ++v) {
      Float sum = acc[r][0][v];
      for (int c = 1; c < kChains; ++c) sum = Simd::add(sum, acc[r][c][v]);
      Simd::store(&scores[r][column + v * kW], Simd::mul(sum, Simd::set1(scale)));
    }
  }
}

// out[r][d..d + kVectors * kW) += sum over t of p[r][t] * values[t], positions [0, count) of a
// tile.
template <class Kv, int kRows, int kVectors>
inline void weigh_columns(const TilePages& tile, const TilePages& ahead,
                          const float (*p)[kAttendTile], int32_t head_dim, int32_t d,
                          float (*out)[kMaxHeadDim]) {
  Float acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = Simd::load(&out[r][d + v * kW]);
  }
  for (int t = 0; t < tile.positions; ++t) {
    const size_t at = (static_cast<size_t>(t % kPageTokens) * head_dim + d) * 2;
    const uint8_t* row = tile.values[t / kPageTokens] + at;
    __builtin_prefetch(ahead.values[t / kPageTokens] + at);
    Float value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = Kv::load(row + v * kW * 2);
    for (int r = 0; r < kRows; ++r) {
      const Float weight = Simd::set1(p[r][t]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Simd::fma(weight, value[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Simd::store(&out[r][d + v * kW], acc[r][v]);
  }
}

template <class Kv, int kRows>
inline void weigh_values(const TilePages& tile, const TilePages& ahead,
                         const float (*p)[kAttendTile], int32_t head_dim,
                         float (*out)[kMaxHeadDim]) {
  int32_t d = 0;
  for (; d + kValueVectors * kW <= head_dim; d += kValueVectors * kW) {
    weigh_columns<Kv, kRows, kValueVectors>(tile, ahead, p, head_dim, d, out);
  }
  if (d < head_dim) weigh_columns<Kv, kRows, 1>(tile, ahead, p, head_dim, d, out);
}

// One row's scores of a tile to weights: masks, moves the running maximum, rescales what is there.
inline void softmax_tile(float* scores, int32_t from, int32_t to, int32_t head_dim, float* maximum,
                         float* total, float* out) {
  const float none = -__builtin_inff();
  for (int t = 0; t < kAttendTile; ++t) {
    if (t < from || t >= to) scores[t] = none;
  }
  const float tile_max = max_row(scores, kAttendTile);
  const float highest = tile_max > *maximum ? tile_max : *maximum;
  if (highest == none) {  // nothing visible yet
    for (int t = 0; t < kAttendTile; ++t) scores[t] = 0;
    return;
  }
  if (highest > *maximum) {
    if (*maximum != none) {
      float shrink[kW];
      Simd::store(shrink, exp_body(Simd::set1(*maximum - highest)));
      *total *= shrink[0];
      map_row(out, head_dim, out, [&](Float v) { return Simd::mul(v, Simd::set1(shrink[0])); });
    }
    *maximum = highest;
  }
  Float sum = Simd::zero();
  for (int t = 0; t < kAttendTile; t += kW) {
    Simd::store(scores + t, exp_body(Simd::sub(Simd::load(scores + t), Simd::set1(highest))));
  }
  // exp clamps at e^-87; what is masked is exactly zero.
  for (int t = 0; t < kAttendTile; ++t) {
    if (t < from || t >= to) scores[t] = 0;
  }
  for (int t = 0; t < kAttendTile; t += kW) sum = Simd::add(sum, Simd::load(scores + t));
  *total += Simd::reduce_add(sum);
}

template <class Kv, int kRows>
inline void scores_of_rows(const AttendArgs& args, int first, const TilePages& tile,
                           const TilePages& ahead, float (*scores)[kAttendTile]) {
  for (int p = 0; p < tile.pages; ++p) {
    page_scores<Kv, kRows>(tile.keys[p], ahead.keys[p], args.q + first, args.head_dim, args.scale,
                           scores + first, p * kPageTokens);
  }
}

// Calls run.template operator()<n>(first) over all rows: kRowTile at a time, then what is left.
template <int kRows, class Run>
inline void last_rows(int rest, int first, const Run& run) {
  if constexpr (kRows > 0) {
    if (rest == kRows) return run.template operator()<kRows>(first);
    last_rows<kRows - 1>(rest, first, run);
  }
}
template <class Run>
inline void for_row_tiles(int rows, const Run& run) {
  int first = 0;
  for (; first + kRowTile <= rows; first += kRowTile) run.template operator()<kRowTile>(first);
  last_rows<kRowTile - 1>(rows - first, first, run);
}

template <class Kv>
void attend(const AttendArgs& args) {
  alignas(64) float scores[kMaxAttendRows][kAttendTile];
  alignas(64) float out[kMaxAttendRows][kMaxHeadDim];
  float maximum[kMaxAttendRows], total[kMaxAttendRows];
  int32_t low = args.begin[0], high = args.end[0];
  for (int r = 0; r < args.rows; ++r) {
    maximum[r] = -__builtin_inff();
    total[r] = 0;
    for (int32_t d = 0; d < args.head_dim; ++d) out[r][d] = 0;
    low = args.begin[r] < low ? args.begin[r] : low;
    high = args.end[r] > high ? args.end[r] : high;
  }
  const int32_t start = low / kAttendTile * kAttendTile;
  TilePages next = tile_at(args, start, high);
  for (int32_t base = start; base < high; base += kAttendTile) {
    const TilePages tile = next;
    if (base + kAttendTile < high) next = tile_at(args, base + kAttendTile, high);
    for_row_tiles(args.rows, [&]<int kRows>(int first) {
      scores_of_rows<Kv, kRows>(args, first, tile, next, scores);
    });
    for (int i = 0; i < args.rows; ++i) {
      softmax_tile(scores[i], args.begin[i] - base, args.end[i] - base, args.head_dim, &maximum[i],
                   &total[i], out[i]);
    }
    for_row_tiles(args.rows, [&]<int kRows>(int first) {
      weigh_values<Kv, kRows>(tile, next, scores + first, args.head_dim, out + first);
    });
  }
  for (int i = 0; i < args.rows; ++i) {
    const Float inverse = Simd::set1(total[i] > 0 ? 1.0f / total[i] : 0.0f);
    map_row(out[i], args.head_dim, args.out[i], [&](Float v) { return Simd::mul(v, inverse); });
  }
}

}  // namespace
}  // namespace wok
