// How the bodies read packed integer panels (pack.h): the codes of a block as 8 vectors of bytes,
// one a group of 4 columns, and its factors as floats, one a row.
#pragma once

#include <cstdint>

#include "kernels/body/elementwise.h"
#include "kernels/body/unroll.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

using Bytes = Simd::Bytes;
using Int = Simd::Int;
constexpr int kVectorBytes = kW * 4;
constexpr int kAheadBytes = 2048;  // how far ahead packed weights are fetched
constexpr int kBlockGroups = 8;    // groups of 4 columns in a block

struct Codes2 {
  static constexpr int kLargest = 3;
  static constexpr int kDepth = 8;
  static constexpr int kVectors = 2;
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    for (int v = 0; v < 2; ++v) {
      const Bytes pairs = Simd::load_bytes(codes + v * kVectorBytes);
      w[4 * v] = Simd::shift_masked<0>(pairs, 3);
      w[4 * v + 1] = Simd::shift_masked<-2>(pairs, 3);
      w[4 * v + 2] = Simd::shift_masked<-4>(pairs, 3);
      w[4 * v + 3] = Simd::shift_masked<-6>(pairs, 3);
    }
  }
};

struct Codes3 {
  static constexpr int kLargest = 7;
  static constexpr int kDepth = 8;
  static constexpr int kVectors = 3;
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    Codes2::load(codes, w);
    const Bytes upper = Simd::load_bytes(codes + 2 * kVectorBytes);
    unrolled<kBlockGroups>([&](auto g) WOK_INLINE {
      w[g] = Simd::or_bytes(w[g], Simd::template shift_masked<2 - g>(upper, 4));
    });
  }
};

struct Codes4 {
  static constexpr int kLargest = 15;
  static constexpr int kDepth = 8;  // Simd::dot_unsigned
  static constexpr int kVectors = 4;
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    for (int v = 0; v < 4; ++v) {
      const Bytes both = Simd::load_bytes(codes + v * kVectorBytes);
      w[v] = Simd::low_nibbles(both);
      w[v + 4] = Simd::high_nibbles(both);
    }
  }
};

struct Codes5 {
  static constexpr int kLargest = 31;
  static constexpr int kDepth = 4;
  static constexpr int kVectors = 5;
  template <int kGroup>
  static Bytes fifth(Bytes upper) {
    return Simd::shift_masked<4 - kGroup>(upper, 0x10);
  }
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    Codes4::load(codes, w);
    const Bytes upper = Simd::load_bytes(codes + 4 * kVectorBytes);
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

struct Codes6 {
  static constexpr int kLargest = 63;
  static constexpr int kDepth = 2;
  static constexpr int kVectors = 6;
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    Codes4::load(codes, w);
    for (int v = 0; v < 2; ++v) {
      const Bytes upper = Simd::load_bytes(codes + (4 + v) * kVectorBytes);
      w[4 * v] = Simd::or_bytes(w[4 * v], Simd::shift_masked<4>(upper, 0x30));
      w[4 * v + 1] = Simd::or_bytes(w[4 * v + 1], Simd::shift_masked<2>(upper, 0x30));
      w[4 * v + 2] = Simd::or_bytes(w[4 * v + 2], Simd::shift_masked<0>(upper, 0x30));
      w[4 * v + 3] = Simd::or_bytes(w[4 * v + 3], Simd::shift_masked<-2>(upper, 0x30));
    }
  }
};

struct Codes8 {
  static constexpr int kLargest = 128;  // in size: codes are signed
  static constexpr int kDepth = 1;
  static constexpr int kVectors = 8;
  WOK_INLINE static void load(const uint8_t* codes, Bytes* w) {
    for (int v = 0; v < 8; ++v) w[v] = Simd::load_bytes(codes + v * kVectorBytes);
  }
};

// Factors of block `i` of a run: weight = scale * code + min. kHalves: columns 16-31 have factors
// of their own. kZero: the code that means 0; where there is one, min is -kZero * scale.
struct Factors {
  Float scale, min;
};

struct ScaleAndMin {
  static constexpr int kRun = 1;
  static constexpr bool kHasMin = true;
  static constexpr int kZero = 0;
  static constexpr int kHeadBytes = kW * 4;
  static constexpr bool kHalves = false;
  static Factors at(const uint8_t* head, int, int) {
    return {Simd::load_half(head), Simd::load_half(head + 2 * kW)};
  }
};

// A zero point that is not known beforehand: min is exact, as scale has 11 bits and zero few.
template <int kBlocks>
struct ScaleAndPoint {
  static constexpr int kRun = kBlocks;
  static constexpr bool kHasMin = true;
  static constexpr int kZero = 0;
  static constexpr int kHeadBytes = kW * 4;
  static constexpr bool kHalves = false;
  static Factors at(const uint8_t* head, int, int) {
    const Float scale = Simd::load_half(head);
    return {scale, Simd::sub(Simd::zero(), Simd::mul(scale, Simd::load_half(head + 2 * kW)))};
  }
};

template <int kZeroCode>
struct ScaleAndZero {
  static constexpr int kRun = 2;
  static constexpr bool kHasMin = false;
  static constexpr int kZero = kZeroCode;
  static constexpr int kHeadBytes = kW * 4;
  static constexpr bool kHalves = false;
  static Factors at(const uint8_t* head, int i, int) {
    const Float scale = Simd::load_half(head + 2 * kW * i);
    return {scale, Simd::mul(scale, Simd::set1(static_cast<float>(-kZero)))};
  }
};

struct SuperScaleAndMin {
  static constexpr int kRun = 8;
  static constexpr bool kHasMin = true;
  static constexpr int kZero = 0;
  static constexpr int kHeadBytes = kW * 20;
  static constexpr bool kHalves = false;
  static Factors at(const uint8_t* head, int i, int) {
    const uint8_t* codes = head + 4 * kW + 2 * kW * i;
    return {Simd::mul(Simd::load_half(head), Simd::load_u8(codes)),
            Simd::mul(Simd::sub(Simd::zero(), Simd::load_half(head + 2 * kW)),
                      Simd::load_u8(codes + kW))};
  }
};

struct SuperHalfScales {
  static constexpr int kRun = 8;
  static constexpr bool kHasMin = false;
  static constexpr int kZero = 32;
  static constexpr int kHeadBytes = kW * 20;
  static constexpr bool kHalves = true;
  static Factors at(const uint8_t* head, int i, int half) {
    const Float scale =
        Simd::mul(Simd::load_half(head), Simd::load_i8(head + 2 * kW + 2 * kW * i + kW * half));
    return {scale, Simd::mul(scale, Simd::set1(static_cast<float>(-kZero)))};
  }
};

struct SuperHalfScalesAndMins {
  static constexpr int kRun = 8;
  static constexpr bool kHasMin = true;
  static constexpr int kZero = 0;
  static constexpr int kHeadBytes = kW * 20;
  static constexpr bool kHalves = true;
  static Factors at(const uint8_t* head, int i, int half) {
    const uint8_t* codes = head + 4 * kW + 2 * kW * i + kW * half;
    return {Simd::mul(Simd::load_half(head), Simd::load_low_u4(codes)),
            Simd::mul(Simd::sub(Simd::zero(), Simd::load_half(head + 2 * kW)),
                      Simd::load_high_u4(codes))};
  }
};

template <int kZeroCode>
struct SuperHalfScalesF32 {
  static constexpr int kRun = 8;
  static constexpr bool kHasMin = false;
  static constexpr int kZero = kZeroCode;
  static constexpr int kHeadBytes = kW * 20;
  static constexpr bool kHalves = true;
  static Factors at(const uint8_t* head, int i, int half) {
    const Float d = Simd::load(reinterpret_cast<const float*>(head));
    const Float scale = Simd::mul(d, Simd::load_i8(head + 4 * kW + 2 * kW * i + kW * half));
    return {scale, Simd::mul(scale, Simd::set1(static_cast<float>(-kZero)))};
  }
};

template <int kZeroCode>
struct HalfScales {
  static constexpr int kRun = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kZero = kZeroCode;
  static constexpr int kHeadBytes = kW * 4;
  static constexpr bool kHalves = true;
  static Factors at(const uint8_t* head, int, int half) {
    const Float scale = Simd::load_half(head + 2 * kW * half);
    return {scale, Simd::mul(scale, Simd::set1(static_cast<float>(-kZero)))};
  }
};

// What a code is: a whole number from 0 on, a signed byte, or the name of a codebook's entry (a
// signed byte again).
enum class Meaning { kUnsigned, kSigned, kTable };

template <class CodesOf, class FactorsOf, Meaning kMeaning = Meaning::kUnsigned,
          bool kFewUse = false>
struct IntFamily {
  using Codes = CodesOf;
  using Scales = FactorsOf;
  static constexpr bool kTable = kMeaning == Meaning::kTable;
  static constexpr bool kSigned = kMeaning != Meaning::kUnsigned;
  static constexpr int kLargest = kTable ? 128 : CodesOf::kLargest;  // in size
  // Families that few models use: fewer shapes of their tiles are compiled.
  static constexpr bool kRare = kFewUse || kTable || CodesOf::kVectors < 4;
  static constexpr bool kHalves = FactorsOf::kHalves;
  static constexpr bool kHasMin = FactorsOf::kHasMin;
  static constexpr int kZero = FactorsOf::kZero;
  static constexpr int kRun = FactorsOf::kRun;
  static constexpr int kCodeBytes = CodesOf::kVectors * kVectorBytes;
  static constexpr int kRunBytes = FactorsOf::kHeadBytes + kRun * kCodeBytes;
};

using Int4 = IntFamily<Codes4, ScaleAndMin>;
using Int4Zero = IntFamily<Codes4, ScaleAndZero<8>>;
using Int4Group = IntFamily<Codes4, ScaleAndPoint<4>>;
using Int4Point = IntFamily<Codes4, ScaleAndPoint<1>, Meaning::kUnsigned, true>;
using Int4Super = IntFamily<Codes4, SuperScaleAndMin>;
using Int5 = IntFamily<Codes5, ScaleAndMin>;
using Int5Zero = IntFamily<Codes5, ScaleAndZero<16>>;
using Int5Super = IntFamily<Codes5, SuperScaleAndMin>;
using Int6Super = IntFamily<Codes6, SuperHalfScales>;
using Int8 = IntFamily<Codes8, ScaleAndZero<Simd::kSignedOffset>, Meaning::kSigned>;
using Int2Zero = IntFamily<Codes2, ScaleAndZero<1>>;
using Int2Super = IntFamily<Codes2, SuperHalfScalesAndMins>;
using Int3Super = IntFamily<Codes3, SuperHalfScalesF32<4>>;
using Table4 = IntFamily<Codes4, ScaleAndZero<Simd::kSignedOffset>, Meaning::kTable>;
using Table4Halves = IntFamily<Codes4, HalfScales<Simd::kSignedOffset>, Meaning::kTable>;
using Table4Super = IntFamily<Codes4, SuperHalfScalesF32<Simd::kSignedOffset>, Meaning::kTable>;
using Table3Super = IntFamily<Codes3, SuperHalfScalesF32<Simd::kSignedOffset>, Meaning::kTable>;

// One block of a panel: its codes and factors; factors[1] is another's only where halves differ.
template <class F>
struct Block {
  Bytes w[kBlockGroups];
  Factors factors[F::kHalves ? 2 : 1];

  WOK_INLINE void load(const uint8_t* head, const uint8_t* codes, int i, const int8_t* codebook) {
    F::Codes::load(codes, w);
    if constexpr (F::kTable) {
      const Bytes table = Simd::load_table(codebook);
      unrolled<kBlockGroups>([&](auto g) WOK_INLINE { w[g] = Simd::look_up(table, w[g]); });
    }
    factors[0] = F::Scales::at(head, i, 0);
    if constexpr (F::kHalves) factors[1] = F::Scales::at(head, i, 1);
  }
};

// Block `i` of the run at `run`. Decode waits for memory, and the hardware looks ahead no further
// than a page's end: so what lies `ahead` bytes behind the block is fetched with it.
template <class F>
WOK_INLINE inline void load_block(const uint8_t* run, int i, const int8_t* codebook,
                                  Block<F>& block, int64_t ahead = kAheadBytes) {
  constexpr int kBlockBytes = F::kCodeBytes + F::Scales::kHeadBytes / F::kRun;
  const uint8_t* codes = run + F::Scales::kHeadBytes + i * F::kCodeBytes;
  for (int line = 0; line < kBlockBytes; line += 64) {
    __builtin_prefetch(codes + ahead + line);
  }
  block.load(run, codes, i, codebook);
}

// Calls fn(block, index) for the blocks [0, blocks) of a panel, or of the part that starts at a
// run.
template <class F, class Fn>
WOK_INLINE inline void for_blocks(const uint8_t* panel, int32_t blocks, const int8_t* codebook,
                                  const Fn& fn) {
  for (int32_t b = 0; b < blocks; panel += F::kRunBytes) {
    for (int i = 0; i < F::kRun && b < blocks; ++i, ++b) {
      Block<F> block;
      load_block(panel, i, codebook, block);
      fn(block, b);
    }
  }
}

}  // namespace
}  // namespace wok
