// Flash attention over pages and the KV store, over the small vector type Simd. Positions are taken
// in absolute splits of kAttendSplit: within one, all scores, then their softmax, then the weighted
// values; splits are folded together in order. So a row's result depends neither on the rows beside
// it nor on which thread computed which split.
#pragma once

#include <cstdint>

#include "kernels/body/attend_tiles.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

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

constexpr float kLog2E = 1.44269504088896341f;  // scores are in units of log 2

inline float exp2_of(float x) {
  float out[kW];
  Simd::store(out, exp2_body(Simd::set1(x)));
  return out[0];
}

// Softmax of a row's scores of one split, in powers of two and without the division: weights in
// [from, to), zeroes in what else of [low, high) is read.
inline void softmax_split(float* scores, int from, int to, int low, int high, float* maximum,
                          float* total) {
  const float none = -__builtin_inff();
  const int begin = from / kW * kW, end = (to + kW - 1) / kW * kW;
  *maximum = none;
  *total = 0;
  if (from < to) {
    for (int t = begin; t < from; ++t) scores[t] = none;
    for (int t = to; t < end; ++t) scores[t] = none;
    *maximum = max_row(scores + begin, end - begin);
  }
  if (*maximum == none) {
    for (int t = low; t < high; ++t) scores[t] = 0;
    return;
  }
  const Float highest = Simd::set1(*maximum);
  Float sum = Simd::zero();
  for (int t = begin; t < end; t += kW) {
    const Float weight = exp2_body(Simd::sub(Simd::load(scores + t), highest));
    Simd::store(scores + t, weight);
    // What is masked adds 2^-126 to a sum of at least one: nothing.
    sum = Simd::add(sum, weight);
  }
  *total = Simd::reduce_add(sum);
  for (int t = low; t < from; ++t) scores[t] = 0;
  for (int t = to; t < high; ++t) scores[t] = 0;
}

// Adds a split's weighted values, maximum and total to those of the splits before it.
inline void fold_split(const float* part, float part_maximum, float part_total, int32_t head_dim,
                       float* out, float* maximum, float* total) {
  if (!(part_total > 0)) return;
  if (!(*total > 0)) {
    map_row(part, head_dim, out, [](Float v) { return v; });
    *maximum = part_maximum;
    *total = part_total;
    return;
  }
  const float highest = part_maximum > *maximum ? part_maximum : *maximum;
  const float keep = exp2_of(*maximum - highest), take = exp2_of(part_maximum - highest);
  zip_row(out, part, head_dim, out, [&](Float a, Float b) {
    return Simd::fma(b, Simd::set1(take), Simd::mul(a, Simd::set1(keep)));
  });
  *maximum = highest;
  *total = *total * keep + part_total * take;
}

// The sums by their weights, and by that of the sink where there is one.
inline void divide_row(const float* sums, float maximum, float total, const float* sink,
                       int32_t head_dim, float* out) {
  float factor = total > 0 ? 1.0f / total : 0.0f;
  if (sink != nullptr && total > 0) {
    const float score = *sink * kLog2E;
    const float highest = score > maximum ? score : maximum;
    const float keep = exp2_of(maximum - highest);
    factor = keep / (total * keep + exp2_of(score - highest));
  }
  const Float inverse = Simd::set1(factor);
  map_row(sums, head_dim, out, [&](Float v) { return Simd::mul(v, inverse); });
}

constexpr int kMaxRowTiles = kMaxAttendRows / kRowTile;
static_assert(kMaxAttendRows % kRowTile == 0);

// One call's rows, cut into tiles of kRowTile, and what is known of them.
template <class Kv>
class SplitAttention {
 public:
  // Reads pages of positions before `end` only.
  SplitAttention(const AttendArgs& args, int32_t end)
      : args_(args), last_page_((end - 1) / kPageTokens) {
    tiles_ = (args.rows + kRowTile - 1) / kRowTile;
    for (int r = 0; r < args.rows; ++r) {
      const float scale = args.scale * kLog2E;
      float* q = q_ + static_cast<size_t>(r / kRowTile) * kRowTile * args.head_dim + r % kRowTile;
      for (int32_t d = 0; d < args.head_dim; ++d) q[d * kRowTile] = args.q[r][d] * scale;
    }
  }

  // Row r's weighted values of split s are then at part(r).
  void run(int32_t split) {
    base_ = split * kAttendSplit;
    low_ = kAttendSplit, high_ = 0;
    for (int i = 0; i < tiles_; ++i) {
      tile_low_[i] = kAttendSplit, tile_high_[i] = 0;
      for (int r = i * kRowTile; r < rows_end(i); ++r) {
        const int from = clamp(args_.begin[r] - base_), to = clamp(args_.end[r] - base_);
        if (from >= to) continue;
        tile_low_[i] = from < tile_low_[i] ? from : tile_low_[i];
        tile_high_[i] = to > tile_high_[i] ? to : tile_high_[i];
      }
      low_ = tile_low_[i] < low_ ? tile_low_[i] : low_;
      high_ = tile_high_[i] > high_ ? tile_high_[i] : high_;
    }
    // Copying to floats pays when several tiles of rows read the copy.
    const bool widen = tiles_ > 2;
    const int first = low_ / kAttendTile * kAttendTile;
    for (int at = first; at < high_; at += kAttendTile) {
      const TilePages keys = pages(at, args_.kv.key_offset);
      const TilePages ahead = at + kAttendTile < high_
                                  ? pages(at + kAttendTile, args_.kv.key_offset)
                                  : pages(first, args_.kv.value_offset);
      if (widen) {
        widen_keys<Kv>(keys, args_.head_dim, panel_);
        score(FloatKeys{panel_}, at, &ahead);
      } else {
        score(PageKeys<Kv>{keys, ahead}, at, nullptr);
      }
    }
    for (int r = 0; r < args_.rows; ++r) {
      const int i = r / kRowTile;
      const int from = clamp(args_.begin[r] - base_), to = clamp(args_.end[r] - base_);
      float* scores = scores_ + r * kScoreStride;
      if (args_.cap > 0 && from < to) {
        const int begin = from / kW * kW;  // a score's lane does not depend on where a row begins
        soft_cap(scores + begin, args_.cap * kLog2E, (to + kW - 1) / kW * kW - begin);
      }
      softmax_split(scores, from, to, tile_low_[i], tile_high_[i], &maximum[r], &total[r]);
      float* out = part(r);
      for (int32_t d = 0; d < args_.head_dim; ++d) out[d] = 0;
    }
    for (int at = first; at < high_; at += kAttendTile) {
      const TilePages values = pages(at, args_.kv.value_offset);
      const TilePages ahead = pages(
          at + kAttendTile, at + kAttendTile < high_ ? args_.kv.value_offset : args_.kv.key_offset);
      if (widen) {
        widen_values<Kv>(values, args_.head_dim, panel_);
        weigh(FloatValues{panel_, args_.head_dim}, at, &ahead);
      } else {
        weigh(PageValues<Kv>{values, ahead, args_.head_dim}, at, nullptr);
      }
    }
  }

  float* part(int row) { return part_ + static_cast<size_t>(row) * args_.head_dim; }
  float maximum[kMaxAttendRows], total[kMaxAttendRows];

 private:
  static int clamp(int32_t at) { return at < 0 ? 0 : at > kAttendSplit ? kAttendSplit : at; }
  int rows_end(int tile) const {
    const int end = (tile + 1) * kRowTile;
    return end < args_.rows ? end : args_.rows;
  }

  // Past the end the last page stands in, so that every entry may be read.
  TilePages pages(int at, size_t offset) const {
    TilePages out;
    for (int p = 0; p < kTilePages; ++p) {
      const int index = (base_ + at) / kPageTokens + p;
      out.page[p] = args_.kv.pool + offset +
                    static_cast<size_t>(args_.page_table[index < last_page_ ? index : last_page_]) *
                        args_.kv.page_bytes;
    }
    return out;
  }

  // Row tile i's share of fetching the pages that all rows will want next.
  void fetch(const TilePages& ahead, int i) const {
    const int lines = args_.head_dim / 2, share = (lines + tiles_ - 1) / tiles_;
    for (int l = i * share; l < (i + 1) * share && l < lines; ++l) {
      for (int p = 0; p < kTilePages; ++p) __builtin_prefetch(ahead.page[p] + 64 * l);
    }
  }

  template <class Keys>
  void score(const Keys& keys, int at, const TilePages* ahead) {
    for (int i = 0; i < tiles_; ++i) {
      if (ahead != nullptr) fetch(*ahead, i);
      if (at >= tile_high_[i] || at + kAttendTile <= tile_low_[i]) continue;
      const size_t row = static_cast<size_t>(i) * kRowTile;
      with_rows(rows_end(i) - i * kRowTile, [&]<int kRows>() {
        score_tile<kRows>(keys, q_ + row * args_.head_dim, args_.head_dim,
                          scores_ + row * kScoreStride + at);
      });
    }
  }

  template <class Values>
  void weigh(const Values& values, int at, const TilePages* ahead) {
    for (int i = 0; i < tiles_; ++i) {
      if (ahead != nullptr) fetch(*ahead, i);
      const int begin = tile_low_[i] > at ? tile_low_[i] - at : 0;
      const int end = tile_high_[i] - at < kAttendTile ? tile_high_[i] - at : kAttendTile;
      if (begin >= end) continue;
      const size_t row = static_cast<size_t>(i) * kRowTile;
      with_rows(rows_end(i) - i * kRowTile, [&]<int kRows>() {
        weigh_tile<kRows>(values, scores_ + row * kScoreStride + at, begin, end, args_.head_dim,
                          part_ + row * args_.head_dim);
      });
    }
  }

  const AttendArgs& args_;
  int32_t last_page_;
  int tiles_, low_, high_;
  int32_t base_;
  int tile_low_[kMaxRowTiles], tile_high_[kMaxRowTiles];
  alignas(64) float q_[kMaxAttendRows * kMaxHeadDim];  // [tile, head_dim, kRowTile], scaled
  alignas(64) float scores_[kMaxAttendRows * kScoreStride];
  alignas(64) float part_[kMaxAttendRows * kMaxHeadDim];
  alignas(64) float panel_[kAttendTile * kMaxHeadDim];
};

template <class Kv>
void attend(const AttendArgs& args) {
  alignas(64) float out[kMaxAttendRows * kMaxHeadDim];
  float maximum[kMaxAttendRows], total[kMaxAttendRows];
  int32_t low = args.begin[0], high = args.end[0];
  for (int r = 0; r < args.rows; ++r) {
    total[r] = 0;
    low = args.begin[r] < low ? args.begin[r] : low;
    high = args.end[r] > high ? args.end[r] : high;
    for (int32_t d = 0; d < args.head_dim; ++d) out[r * args.head_dim + d] = 0;
  }
  SplitAttention<Kv> splits(args, high);
  for (int32_t s = low / kAttendSplit; s * kAttendSplit < high; ++s) {
    splits.run(s);
    for (int r = 0; r < args.rows; ++r) {
      fold_split(splits.part(r), splits.maximum[r], splits.total[r], args.head_dim,
                 out + r * args.head_dim, &maximum[r], &total[r]);
    }
  }
  for (int r = 0; r < args.rows; ++r) {
    divide_row(out + r * args.head_dim, maximum[r], total[r],
               args.sinks != nullptr ? args.sinks + r : nullptr, args.head_dim, args.out[r]);
  }
}

template <class Kv>
void attend_split(const AttendArgs& args, int32_t split) {
  int32_t high = args.end[0];
  for (int r = 1; r < args.rows; ++r) high = args.end[r] > high ? args.end[r] : high;
  const int32_t split_end = (split + 1) * kAttendSplit;
  SplitAttention<Kv> splits(args, high < split_end ? high : split_end);
  splits.run(split);
  for (int r = 0; r < args.rows; ++r) {
    map_row(splits.part(r), args.head_dim, args.out[r], [](Float v) { return v; });
    args.out[r][args.head_dim] = splits.maximum[r];
    args.out[r][args.head_dim + 1] = splits.total[r];
  }
}

void combine_splits(const float* parts, int64_t stride, int32_t splits, int32_t head_dim,
                    const float* sink, float* out) {
  float maximum = 0, total = 0;
  for (int32_t d = 0; d < head_dim; ++d) out[d] = 0;
  for (int32_t s = 0; s < splits; ++s, parts += stride) {
    fold_split(parts, parts[head_dim], parts[head_dim + 1], head_dim, out, &maximum, &total);
  }
  divide_row(out, maximum, total, sink, head_dim, out);
}

}  // namespace
}  // namespace wok
