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

// scores[r][0..16) = q[r] · keys of one page.
template <class Kv, int kRows>
inline void page_scores(const uint8_t* keys, const float* const* q, int32_t head_dim, float scale,
                        float (*scores)[kAttendTile], int column) {
  Float acc[kRows][kPageVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kPageVectors; ++v) acc[r][v] = Simd::zero();
  }
  for (int32_t d = 0; d < head_dim; ++d) {
    Float k[kPageVectors];
    for (int v = 0; v < kPageVectors; ++v) {
      k[v] = Kv::load(keys + (static_cast<size_t>(d) * kPageTokens + v * kW) * 2);
    }
    for (int r = 0; r < kRows; ++r) {
      const Float qd = Simd::set1(q[r][d]);
      for (int v = 0; v < kPageVectors; ++v) acc[r][v] = Simd::fma(qd, k[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kPageVectors; ++v) {
      Simd::store(&scores[r][column + v * kW], Simd::mul(acc[r][v], Simd::set1(scale)));
    }
  }
}

// out[r] += sum over t of p[r][t] * values[t], for the positions [0, count) of one tile.
template <class Kv, int kRows>
inline void weigh_values(const uint8_t* const* pages, int count, const float (*p)[kAttendTile],
                         int32_t head_dim, float (*out)[kMaxHeadDim]) {
  constexpr int kChunk = 16 / kW;
  for (int32_t d = 0; d < head_dim; d += 16) {
    Float acc[kRows][kChunk];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kChunk; ++v) acc[r][v] = Simd::load(&out[r][d + v * kW]);
    }
    for (int t = 0; t < count; ++t) {
      const uint8_t* row =
          pages[t / kPageTokens] + (static_cast<size_t>(t % kPageTokens) * head_dim + d) * 2;
      Float value[kChunk];
      for (int v = 0; v < kChunk; ++v) value[v] = Kv::load(row + v * kW * 2);
      for (int r = 0; r < kRows; ++r) {
        const Float weight = Simd::set1(p[r][t]);
        for (int v = 0; v < kChunk; ++v) acc[r][v] = Simd::fma(weight, value[v], acc[r][v]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kChunk; ++v) Simd::store(&out[r][d + v * kW], acc[r][v]);
    }
  }
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
inline void scores_of_rows(const AttendArgs& args, int first, const uint8_t* const* key_pages,
                           int pages, float (*scores)[kAttendTile]) {
  for (int p = 0; p < pages; ++p) {
    page_scores<Kv, kRows>(key_pages[p], args.q + first, args.head_dim, args.scale, scores + first,
                           p * kPageTokens);
  }
}

template <class Kv>
void attend(const AttendArgs& args) {
  constexpr int kPages = kAttendTile / kPageTokens;
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
  for (int32_t base = low / kAttendTile * kAttendTile; base < high; base += kAttendTile) {
    const int32_t count = high - base < kAttendTile ? high - base : kAttendTile;
    const int pages = (count + kPageTokens - 1) / kPageTokens;
    const uint8_t* key_pages[kPages];
    const uint8_t* value_pages[kPages];
    for (int p = 0; p < pages; ++p) {
      const uint8_t* page =
          args.kv.pool +
          static_cast<size_t>(args.page_table[base / kPageTokens + p]) * args.kv.page_bytes;
      key_pages[p] = page + args.kv.key_offset;
      value_pages[p] = page + args.kv.value_offset;
    }
    int r = 0;
    for (; r + 4 <= args.rows; r += 4) scores_of_rows<Kv, 4>(args, r, key_pages, pages, scores);
    const int rest = args.rows - r;
    if (rest == 3) scores_of_rows<Kv, 3>(args, r, key_pages, pages, scores);
    if (rest == 2) scores_of_rows<Kv, 2>(args, r, key_pages, pages, scores);
    if (rest == 1) scores_of_rows<Kv, 1>(args, r, key_pages, pages, scores);
    for (int i = 0; i < args.rows; ++i) {
      softmax_tile(scores[i], args.begin[i] - base, args.end[i] - base, args.head_dim, &maximum[i],
                   &total[i], out[i]);
    }
    for (r = 0; r + 4 <= args.rows; r += 4) {
      weigh_values<Kv, 4>(value_pages, count, scores + r, args.head_dim, out + r);
    }
    if (rest == 3) weigh_values<Kv, 3>(value_pages, count, scores + r, args.head_dim, out + r);
    if (rest == 2) weigh_values<Kv, 2>(value_pages, count, scores + r, args.head_dim, out + r);
    if (rest == 1) weigh_values<Kv, 1>(value_pages, count, scores + r, args.head_dim, out + r);
  }
  for (int i = 0; i < args.rows; ++i) {
    const Float inverse = Simd::set1(total[i] > 0 ? 1.0f / total[i] : 0.0f);
    map_row(out[i], args.head_dim, args.out[i], [&](Float v) { return Simd::mul(v, inverse); });
  }
}

}  // namespace
}  // namespace wok
