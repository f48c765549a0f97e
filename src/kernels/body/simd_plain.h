// The small vector type in plain C++, 16 lanes wide like AVX-512: lets tests run the 16-row panel
// layout and the bodies' 16-lane form on machines whose CPU has no such registers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace wok {
namespace {

struct Simd {
  // Nothing to fill here: more rows only take long to compile.
  static constexpr int kExactTileRows = 2;
  static constexpr int kStreamRows = 2, kStreamPanels = 2, kOneStreamRows = 2;
  static constexpr int kWidth = 16;
  static constexpr const char* kName = "plain16";
  static constexpr bool kHasGroups = true;
  static constexpr bool kHasVnni = true;
  static constexpr int kSignedOffset = 128;
  struct Float {
    float v[kWidth];
  };
  struct Int {
    int32_t v[kWidth];
  };
  struct Bytes {
    uint8_t v[kWidth * 4];
  };
  template <class Op>
  static Float map(Op op) {
    Float r;
    for (int i = 0; i < kWidth; ++i) r.v[i] = op(i);
    return r;
  }
  template <class Op>
  static Bytes map_bytes(Op op) {
    Bytes r;
    for (int i = 0; i < kWidth * 4; ++i) r.v[i] = static_cast<uint8_t>(op(i));
    return r;
  }

  static Float zero() { return set1(0); }
  static Float set1(float x) {
    return map([&](int) { return x; });
  }
  static Float load(const float* p) {
    return map([&](int i) { return p[i]; });
  }
  static void store(float* p, Float a) { std::memcpy(p, a.v, sizeof(a.v)); }
  static Float add(Float a, Float b) {
    return map([&](int i) { return a.v[i] + b.v[i]; });
  }
  static Float sub(Float a, Float b) {
    return map([&](int i) { return a.v[i] - b.v[i]; });
  }
  static Float mul(Float a, Float b) {
    return map([&](int i) { return a.v[i] * b.v[i]; });
  }
  static Float div(Float a, Float b) {
    return map([&](int i) { return a.v[i] / b.v[i]; });
  }
  static Float fma(Float a, Float b, Float c) {
    return map([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static Float max(Float a, Float b) {
    return map([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static Float min(Float a, Float b) {
    return map([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static Float abs(Float a) {
    return map([&](int i) { return std::fabs(a.v[i]); });
  }
  static Float round(Float a) {
    return map([&](int i) { return std::nearbyint(a.v[i]); });
  }
  static Float to_float(Int a) {
    return map([&](int i) { return static_cast<float>(a.v[i]); });
  }
  static Float pow2(Float n) {
    return map([&](int i) { return std::ldexp(1.0f, static_cast<int>(n.v[i])); });
  }
  // v * 2^n, n whole.
  static Float scale2(Float v, Float n) { return mul(v, pow2(n)); }
  static float reduce_add(Float a) {
    float sum = 0;
    for (float x : a.v) sum += x;
    return sum;
  }
  static float reduce_max(Float a) {
    float best = a.v[0];
    for (float x : a.v) best = x > best ? x : best;
    return best;
  }

  static Float load_half(const void* p) {
    const auto* h = static_cast<const uint8_t*>(p);
    return map([&](int i) { return half_to_float(load_unaligned<uint16_t>(h + 2 * i)); });
  }
  static void store_half(void* p, Float a) {
    for (int i = 0; i < kWidth; ++i) {
      const uint16_t bits = float_to_half(a.v[i]);
      std::memcpy(static_cast<uint8_t*>(p) + 2 * i, &bits, 2);
    }
  }
  static Float load_bf16(const void* p) {
    const auto* h = static_cast<const uint8_t*>(p);
    return map([&](int i) { return bf16_to_float(load_unaligned<uint16_t>(h + 2 * i)); });
  }
  static void store_bf16(void* p, Float a) {
    for (int i = 0; i < kWidth; ++i) {
      const uint16_t bits = float_to_bf16(a.v[i]);
      std::memcpy(static_cast<uint8_t*>(p) + 2 * i, &bits, 2);
    }
  }
  static void store_int8(int8_t* p, Float a) {
    for (int i = 0; i < kWidth; ++i) p[i] = static_cast<int8_t>(a.v[i]);
  }

  static void store_uint8(uint8_t* p, Float a) {
    for (int i = 0; i < kWidth; ++i) p[i] = static_cast<uint8_t>(a.v[i]);
  }
  static Float load_u8(const void* p) {
    return map([&](int i) { return static_cast<float>(static_cast<const uint8_t*>(p)[i]); });
  }
  static Float load_i8(const void* p) {
    return map([&](int i) { return static_cast<float>(static_cast<const int8_t*>(p)[i]); });
  }

  static Float load_low_u4(const void* p) {
    return map([&](int i) { return static_cast<float>(static_cast<const uint8_t*>(p)[i] & 15); });
  }
  static Float load_high_u4(const void* p) {
    return map([&](int i) { return static_cast<float>(static_cast<const uint8_t*>(p)[i] >> 4); });
  }

  static Bytes load_table(const int8_t* p) {
    return map_bytes([&](int i) { return p[i % 16]; });
  }
  static Bytes look_up(Bytes table, Bytes codes) {
    return map_bytes([&](int i) { return table.v[codes.v[i]]; });
  }

  static Bytes load_bytes(const void* p) {
    Bytes r;
    std::memcpy(r.v, p, sizeof(r.v));
    return r;
  }
  static void store_bytes(void* p, Bytes a) { std::memcpy(p, a.v, sizeof(a.v)); }
  static Bytes or_bytes(Bytes a, Bytes b) {
    return map_bytes([&](int i) { return a.v[i] | b.v[i]; });
  }
  static Bytes low_nibbles(Bytes a) {
    return map_bytes([&](int i) { return a.v[i] & 15; });
  }
  static Bytes high_nibbles(Bytes a) {
    return map_bytes([&](int i) { return a.v[i] >> 4; });
  }
  template <int kUp>
  static Bytes shift_masked(Bytes a, int mask) {
    return map_bytes([&](int i) {
      return (kUp >= 0 ? a.v[i] << (kUp > 0 ? kUp : 0) : a.v[i] >> (kUp < 0 ? -kUp : 0)) & mask;
    });
  }
  template <int kDepth, int kGroups>
  static Int dot_unsigned(Int r, const Bytes* w, const int8_t* a) {
    for (int i = 0; i < kGroups * 4 * kWidth; ++i) {
      const int group = i / (4 * kWidth), byte = i % (4 * kWidth);
      r.v[byte / 4] += w[group].v[byte] * a[4 * group + byte % 4];
    }
    return r;
  }
  template <int kGroups>
  static Int dot_signed(Int r, const Bytes* w, const int8_t* a) {
    for (int i = 0; i < kGroups * 4 * kWidth; ++i) {
      const int group = i / (4 * kWidth), byte = i % (4 * kWidth);
      r.v[byte / 4] += (w[group].v[byte] ^ 0x80) * a[4 * group + byte % 4];
    }
    return r;
  }

  static Bytes offset_codes(Bytes w) {
    return map_bytes([&](int i) { return w.v[i] ^ 0x80; });
  }
  static Int broadcast_codes(const int8_t* p) {
    return broadcast_int(reinterpret_cast<const uint8_t*>(p));
  }
  static Int dot_codes(Int sum, Bytes w, Int a) {
    int8_t bytes[kWidth * 4];
    std::memcpy(bytes, a.v, sizeof(bytes));
    for (int i = 0; i < kWidth * 4; ++i) sum.v[i / 4] += w.v[i] * bytes[i];
    return sum;
  }

  static Int zero_int() { return {}; }
  static Int set1_int(int32_t v) {
    Int r;
    for (int32_t& lane : r.v) lane = v;
    return r;
  }
  template <int kBits>
  static Int times_power(Int a) {
    for (int32_t& lane : a.v) {
      lane = kBits >= 0 ? lane * (1 << (kBits >= 0 ? kBits : 0)) : lane >> (kBits < 0 ? -kBits : 0);
    }
    return a;
  }
  static Int load_int(const int32_t* p) {
    Int r;
    std::memcpy(r.v, p, sizeof(r.v));
    return r;
  }
  static void store_int(int32_t* p, Int a) { std::memcpy(p, a.v, sizeof(a.v)); }
  static Int broadcast_int(const uint8_t* p) {
    Int r;
    for (int32_t& lane : r.v) std::memcpy(&lane, p, 4);
    return r;
  }
  static Int dot(Int sum, Int a, Bytes w) {
    uint8_t bytes[kWidth * 4];
    std::memcpy(bytes, a.v, sizeof(bytes));
    for (int i = 0; i < kWidth * 4; ++i) sum.v[i / 4] += bytes[i] * static_cast<int8_t>(w.v[i]);
    return sum;
  }
  static Int add_codes(Int sum, Bytes w) {
    for (int i = 0; i < kWidth * 4; ++i) sum.v[i / 4] += static_cast<int8_t>(w.v[i]);
    return sum;
  }
  static Int times_minus_128(Int a) {
    for (int32_t& lane : a.v) lane *= -128;
    return a;
  }
  struct Rounding {
    int32_t scale[kWidth], min[kWidth];
  };
  template <bool kSigned>
  static Rounding rounding(Float scale, Float min) {
    Rounding r;
    for (int i = 0; i < kWidth; ++i) {
      r.scale[i] = static_cast<int32_t>(std::nearbyint(scale.v[i] * (kSigned ? 16384 : 128)));
      r.min[i] = 64;
      if (!kSigned) r.min[i] = static_cast<int32_t>(std::nearbyint(std::fma(min.v[i], 128, 64)));
    }
    return r;
  }
  template <bool kSigned>
  static Bytes round_codes(Bytes w, const Rounding& r) {
    return map_bytes([&](int i) {
      const int row = i / 4;
      const int word = kSigned ? (static_cast<int8_t>(w.v[i]) * 256 * r.scale[row] + 16384) >> 15
                               : w.v[i] * r.scale[row];
      return (word + r.min[row]) >> 7;
    });
  }
};

}  // namespace
}  // namespace wok
