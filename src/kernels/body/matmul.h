// Packed matrix times activations over the small vector type Simd. One tile routine serves decode
// (one row) and prefill (many): the float operations of an output are the same in both, so batching
// never changes a result. With many rows the panel is first unpacked to bytes in scratch, so that
// decoding nibbles is paid once a panel and not once a row tile.
#pragma once

#include <cstdint>

#include "kernels/body/elementwise.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

using Bytes = Simd::Bytes;
constexpr int kVectorBytes = kW * 4;
constexpr int kGroups = 8;  // groups of 4 columns in a block

struct Int4 {
  static constexpr int kDepth = 8;
  static constexpr int kBytes = kW * 20;
  static void load(const uint8_t* block, Bytes* w) {
    for (int v = 0; v < 4; ++v) {
      const Bytes both = Simd::load_bytes(block + 4 * kW + v * kVectorBytes);
      w[v] = Simd::low_nibbles(both);
      w[v + 4] = Simd::high_nibbles(both);
    }
  }
};

struct Int5 {
  static constexpr int kDepth = 4;
  static constexpr int kBytes = kW * 24;
  template <int kGroup>
  static Bytes fifth(Bytes upper) {
    return Simd::shift_masked<4 - kGroup>(upper, 0x10);
  }
  static void load(const uint8_t* block, Bytes* w) {
    Int4::load(block, w);
    const Bytes upper = Simd::load_bytes(block + 4 * kW + 4 * kVectorBytes);
    w[0] = Simd::or_bytes(w[0], fifth<0>(upper));
    w[1] = Simd::or_bytes(w[1], fifth<1>(upper));
    w[2] = Simd::or_bytes(w[2], fifth<2>(upper));
    w[3] = Simd::or_bytes(w[3], fifth<3>(upper));
    w[4] = Simd::or_bytes(w[4], fifth<4>(upper));
    w[5] = Simd::or_bytes(w[5], fifth<5>(upper));
    w[6] = Simd::or_bytes(w[6], fifth<6>(upper));
    w[7] = Simd::or_bytes(w[7], fifth<7>(upper));
  }
};

struct Int6 {
  static constexpr int kDepth = 2;
  static constexpr int kBytes = kW * 28;
  static void load(const uint8_t* block, Bytes* w) {
    Int4::load(block, w);
    for (int v = 0; v < 2; ++v) {
      const Bytes upper = Simd::load_bytes(block + 4 * kW + (4 + v) * kVectorBytes);
      w[4 * v] = Simd::or_bytes(w[4 * v], Simd::shift_masked<4>(upper, 0x30));
      w[4 * v + 1] = Simd::or_bytes(w[4 * v + 1], Simd::shift_masked<2>(upper, 0x30));
      w[4 * v + 2] = Simd::or_bytes(w[4 * v + 2], Simd::shift_masked<0>(upper, 0x30));
      w[4 * v + 3] = Simd::or_bytes(w[4 * v + 3], Simd::shift_masked<-2>(upper, 0x30));
    }
  }
};

struct Int8 {
  static constexpr int kDepth = 1;
  static constexpr int kBytes = kW * 34;
  static void load(const uint8_t* block, Bytes* w) {
    for (int v = 0; v < kGroups; ++v) w[v] = Simd::load_bytes(block + 2 * kW + v * kVectorBytes);
  }
};

// An unpacked block in scratch: two float vectors (scale and min; two scales for Int6), 8 vectors.
constexpr int kUnpackedBytes = 2 * kVectorBytes + kGroups * kVectorBytes;

// Where a block's codes and factors come from: packed memory or scratch.
template <class F>
struct Packed {
  using Format = F;
  static constexpr int kStride = F::kBytes;
  static void load(const uint8_t* block, Bytes* w) { F::load(block, w); }
  static Float first(const uint8_t* block) { return Simd::load_half(block); }
  static Float second(const uint8_t* block) { return Simd::load_half(block + 2 * kW); }
};
template <class F>
struct Unpacked {
  using Format = F;
  static constexpr int kStride = kUnpackedBytes;
  static void load(const uint8_t* block, Bytes* w) {
    for (int v = 0; v < kGroups; ++v) {
      w[v] = Simd::load_bytes(block + (2 + v) * kVectorBytes);
    }
  }
  static Float first(const uint8_t* block) {
    return Simd::load(reinterpret_cast<const float*>(block));
  }
  static Float second(const uint8_t* block) {
    return Simd::load(reinterpret_cast<const float*>(block + kVectorBytes));
  }
};

template <class F>
inline void unpack_panel(const uint8_t* panel, int32_t blocks, uint8_t* out) {
  for (int32_t b = 0; b < blocks; ++b) {
    const uint8_t* from = panel + static_cast<int64_t>(b) * F::kBytes;
    uint8_t* to = out + static_cast<int64_t>(b) * kUnpackedBytes;
    Simd::store(reinterpret_cast<float*>(to), Simd::load_half(from));
    if constexpr (F::kDepth != Int8::kDepth) {
      Simd::store(reinterpret_cast<float*>(to + kVectorBytes), Simd::load_half(from + 2 * kW));
    }
    Bytes w[kGroups];
    F::load(from, w);
    for (int v = 0; v < kGroups; ++v) Simd::store_bytes(to + (2 + v) * kVectorBytes, w[v]);
  }
}

// kRows activation rows by one panel, summed over the blocks in order.
template <class Source, int kRows>
inline void tile(const uint8_t* panel, const Activations& x, int32_t row, Float* acc) {
  using F = typename Source::Format;
  const int32_t blocks = x.cols / kBlockColumns;
  const int8_t* q = x.q + static_cast<int64_t>(row) * x.cols;
  const float* scale = x.scale + static_cast<int64_t>(row) * blocks;
  const float* sum = x.sum + static_cast<int64_t>(row) * blocks;
  const float* half_sum = x.half_sum + static_cast<int64_t>(row) * blocks * 2;
  for (int m = 0; m < kRows; ++m) acc[m] = Simd::zero();
  for (int32_t b = 0; b < blocks; ++b, panel += Source::kStride) {
    Bytes w[kGroups];
    Source::load(panel, w);
    const Float d = Source::first(panel);
    for (int m = 0; m < kRows; ++m) {
      const int8_t* a = q + static_cast<int64_t>(m) * x.cols + b * kBlockColumns;
      const Float da = Simd::set1(scale[static_cast<int64_t>(m) * blocks + b]);
      if constexpr (F::kDepth == Int8::kDepth) {
        const Float dot = Simd::to_float(Simd::template dot_signed<kGroups>(w, a));
        acc[m] = Simd::fma(dot, Simd::mul(d, da), acc[m]);
      } else if constexpr (F::kDepth == Int6::kDepth) {
        const Float d1 = Source::second(panel);
        const float* s = half_sum + (static_cast<int64_t>(m) * blocks + b) * 2;
        const Float dot0 = Simd::to_float(Simd::template dot_unsigned<F::kDepth, 4>(w, a));
        const Float dot1 = Simd::to_float(Simd::template dot_unsigned<F::kDepth, 4>(w + 4, a + 16));
        acc[m] = Simd::fma(dot0, Simd::mul(d, da), acc[m]);
        acc[m] = Simd::fma(d, Simd::set1(-32.0f * s[0]), acc[m]);
        acc[m] = Simd::fma(dot1, Simd::mul(d1, da), acc[m]);
        acc[m] = Simd::fma(d1, Simd::set1(-32.0f * s[1]), acc[m]);
      } else {
        const Float min = Source::second(panel);
        const Float dot = Simd::to_float(Simd::template dot_unsigned<F::kDepth, kGroups>(w, a));
        acc[m] = Simd::fma(dot, Simd::mul(d, da), acc[m]);
        acc[m] = Simd::fma(min, Simd::set1(sum[static_cast<int64_t>(m) * blocks + b]), acc[m]);
      }
    }
  }
}

// Float panels: even and odd columns have sums of their own, for two chains of additions.
template <class Load, int kRows>
inline void float_tile(const uint8_t* panel, const Activations& x, int32_t row, Float* acc) {
  const float* a = x.f32 + static_cast<int64_t>(row) * x.cols;
  Float odd[kRows];
  for (int m = 0; m < kRows; ++m) acc[m] = odd[m] = Simd::zero();
  int32_t c = 0;
  for (; c + 2 <= x.cols; c += 2, panel += 2 * Load::kBytes) {
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

inline void write_out(const MatmulArgs& args, int32_t panel, int32_t row, Float value) {
  const int32_t first = panel * kW;
  const int32_t valid = args.weights->rows - first < kW ? args.weights->rows - first : kW;
  float* y = args.y + row * args.y_stride + first;
  if (valid == kW) {
    Simd::store(y, args.accumulate ? Simd::add(value, Simd::load(y)) : value);
    return;
  }
  float lanes[kW];
  Simd::store(lanes, value);
  for (int32_t i = 0; i < valid; ++i) y[i] = args.accumulate ? lanes[i] + y[i] : lanes[i];
}

// Activation rows that pass a panel together: as many as leave room for the block in registers.
constexpr int kTileRows = kW == 16 ? 8 : 4;

template <class Tile, int kRows>
inline void one_tile(const MatmulArgs& args, const uint8_t* data, int32_t panel, int32_t row) {
  Float acc[kRows];
  Tile::template run<kRows>(data, *args.x, row, acc);
  for (int i = 0; i < kRows; ++i) write_out(args, panel, row + i, acc[i]);
}

// The last `rest` < kTileRows rows in one tile of just that height.
template <class Tile, int kRows>
inline void last_tile(const MatmulArgs& args, const uint8_t* data, int32_t panel, int32_t row,
                      int rest) {
  if constexpr (kRows > 0) {
    if (rest == kRows) return one_tile<Tile, kRows>(args, data, panel, row);
    last_tile<Tile, kRows - 1>(args, data, panel, row, rest);
  }
}

// Runs Tile::run over activation rows [begin, end) of one panel.
template <class Tile>
inline void rows_of_panel(const MatmulArgs& args, const uint8_t* data, int32_t panel, int32_t begin,
                          int32_t end) {
  int32_t m = begin;
  for (; m + kTileRows <= end; m += kTileRows) one_tile<Tile, kTileRows>(args, data, panel, m);
  last_tile<Tile, kTileRows - 1>(args, data, panel, m, end - m);
}

template <class Source>
struct IntTile {
  template <int kRows>
  static void run(const uint8_t* data, const Activations& x, int32_t row, Float* acc) {
    tile<Source, kRows>(data, x, row, acc);
  }
};
template <class Load>
struct FloatTile {
  template <int kRows>
  static void run(const uint8_t* data, const Activations& x, int32_t row, Float* acc) {
    float_tile<Load, kRows>(data, x, row, acc);
  }
};

// Rows from which unpacking a panel first pays: more than one tile would decode it again.
constexpr int32_t kUnpackFrom = kTileRows + 1;
constexpr int32_t kRowBlock = 16;  // activation rows that stay in L1 while the panels pass

template <class F>
void int_matmul(const MatmulArgs& args) {
  const Matrix& w = *args.weights;
  const int32_t rows = args.x->rows;
  const int32_t blocks = w.cols / kBlockColumns;
  if (rows < kUnpackFrom) {
    for (int32_t p = args.panel_begin; p < args.panel_end; ++p) {
      rows_of_panel<IntTile<Packed<F>>>(args, w.data + p * w.panel_bytes, p, 0, rows);
    }
    return;
  }
  const int64_t unpacked_panel = static_cast<int64_t>(blocks) * kUnpackedBytes;
  for (int32_t p0 = args.panel_begin; p0 < args.panel_end; p0 += kPanelsPerTask) {
    const int32_t count =
        args.panel_end - p0 < kPanelsPerTask ? args.panel_end - p0 : kPanelsPerTask;
    for (int32_t p = 0; p < count; ++p) {
      unpack_panel<F>(w.data + (p0 + p) * w.panel_bytes, blocks, args.scratch + p * unpacked_panel);
    }
    for (int32_t begin = 0; begin < rows; begin += kRowBlock) {
      const int32_t end = rows - begin < kRowBlock ? rows : begin + kRowBlock;
      for (int32_t p = 0; p < count; ++p) {
        rows_of_panel<IntTile<Unpacked<F>>>(args, args.scratch + p * unpacked_panel, p0 + p, begin,
                                            end);
      }
    }
  }
}

template <class Load>
void float_matmul(const MatmulArgs& args) {
  const Matrix& w = *args.weights;
  for (int32_t begin = 0; begin < args.x->rows; begin += kRowBlock) {
    const int32_t end = args.x->rows - begin < kRowBlock ? args.x->rows : begin + kRowBlock;
    for (int32_t p = args.panel_begin; p < args.panel_end; ++p) {
      rows_of_panel<FloatTile<Load>>(args, w.data + p * w.panel_bytes, p, begin, end);
    }
  }
}

void matmul(const MatmulArgs& args) {
  switch (args.weights->family) {
    case Family::kInt4:
      return int_matmul<Int4>(args);
    case Family::kInt5:
      return int_matmul<Int5>(args);
    case Family::kInt6:
      return int_matmul<Int6>(args);
    case Family::kInt8:
      return int_matmul<Int8>(args);
    case Family::kFloat16:
      return float_matmul<LoadHalf>(args);
    case Family::kBFloat16:
      return float_matmul<LoadBf16>(args);
    case Family::kFloat32:
      return float_matmul<LoadFloat>(args);
  }
}

}  // namespace
}  // namespace wok
