// The small vector type the bodies are written in, for AVX-512 F/BW/DQ/VL with VNNI. Include only
// from a translation unit compiled with those flags; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/body/unroll.h"

namespace wok {
namespace {

struct Simd {
  // Rows of an exact tile: with two panels their sums fill the registers.
  static constexpr int kExactTileRows = 6;
  // Rows that panels are streamed for, and panels at once; rows where it is one (StreamTile).
  static constexpr int kStreamRows = 4, kStreamPanels = 4, kOneStreamRows = 8;
  static constexpr int kWidth = 16;
  static constexpr const char* kName = "avx512";
  using Float = __m512;
  using Int = __m512i;
  using Bytes = __m512i;
  static constexpr bool kHasGroups = true;
  static constexpr bool kHasVnni = true;
  static constexpr int kSignedOffset = 128;

  static Float zero() { return _mm512_setzero_ps(); }
  static Float set1(float v) { return _mm512_set1_ps(v); }
  static Float load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Float v) { _mm512_storeu_ps(p, v); }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float div(Float a, Float b) { return _mm512_div_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float abs(Float a) { return _mm512_abs_ps(a); }
  static Float round(Float a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Int to_int(Float a) { return _mm512_cvtps_epi32(a); }
  static Float to_float(Int a) { return _mm512_cvtepi32_ps(a); }
  static Float pow2(Float n) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
  }
  // v * 2^n, n whole.
  static Float scale2(Float v, Float n) { return _mm512_scalef_ps(v, n); }
  static float reduce_add(Float v) { return _mm512_reduce_add_ps(v); }
  static float reduce_max(Float v) { return _mm512_reduce_max_ps(v); }

  static Float load_half(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static void store_half(void* p, Float v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float load_bf16(const void* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p))), 16));
  }
  static void store_bf16(void* p, Float v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(rounded));
  }
  static void store_int8(int8_t* p, Float v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }

  static void store_uint8(uint8_t* p, Float v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  static Float load_u8(const void* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))));
  }
  static Float load_i8(const void* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))));
  }

  // The low and the high halves of bytes.
  static Float load_low_u4(const void* p) { return _mm512_cvtepi32_ps(nibbles<0>(p)); }
  static Float load_high_u4(const void* p) { return _mm512_cvtepi32_ps(nibbles<4>(p)); }

  // A table of 16 bytes, and its entries that codes 0..15 name.
  static Bytes load_table(const int8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Bytes look_up(Bytes table, Bytes codes) { return _mm512_shuffle_epi8(table, codes); }

  static Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
  static void store_bytes(void* p, Bytes v) { _mm512_storeu_si512(p, v); }
  static Bytes or_bytes(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  static Bytes low_nibbles(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
  static Bytes high_nibbles(Bytes v) {
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
  }
  template <int kUp>
  static Bytes shift_masked(Bytes v, int mask) {
    if constexpr (kUp > 0) v = _mm512_slli_epi16(v, kUp);
    if constexpr (kUp < 0) v = _mm512_srli_epi16(v, -kUp);
    return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
  }

  static __m512i broadcast4(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  // sum + the products of unsigned a and signed b, four to a lane. Written as an instruction that
  // changes its operand: from the intrinsic GCC 12 makes a copy of every sum, which no longer fit
  // the registers then.
  static Int dpbusd(Int sum, Int a, Bytes b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  // VNNI sums four products into 32 bits at once, so kDepth does not matter here.
  template <int kDepth, int kGroups>
  WOK_INLINE static Int dot_unsigned(Int total, const Bytes* w, const int8_t* a) {
    unrolled<kGroups>([&](auto g)
                          WOK_INLINE { total = dpbusd(total, w[g], broadcast4(a + 4 * g)); });
    return total;
  }
  // dpbusd wants one unsigned operand: the codes + kSignedOffset. The caller begins
  // with -kSignedOffset times the sum of the activations.
  template <int kGroups>
  WOK_INLINE static Int dot_signed(Int total, const Bytes* w, const int8_t* a) {
    unrolled<kGroups>([&](auto g) WOK_INLINE {
      total = dpbusd(total, offset_codes(w[g]), broadcast4(a + 4 * g));
    });
    return total;
  }

  // sum + the products of codes and activations: unsigned, or signed and moved by kSignedOffset.
  static Bytes offset_codes(Bytes w) {
    return _mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  static Int broadcast_codes(const int8_t* p) { return broadcast4(p); }
  static Int dot_codes(Int sum, Bytes w, Int a) { return dpbusd(sum, w, a); }

  // For rounding codes to int8 (body/group_matmul.h), in words of 7 fraction bits.
  static Int zero_int() { return _mm512_setzero_si512(); }
  static Int set1_int(int32_t v) { return _mm512_set1_epi32(v); }
  // v * 2^kBits, rounded down.
  template <int kBits>
  static Int times_power(Int v) {
    if constexpr (kBits < 0) return _mm512_srai_epi32(v, -kBits);
    return _mm512_slli_epi32(v, kBits < 0 ? 0 : kBits);
  }
  static Int load_int(const int32_t* p) { return _mm512_loadu_si512(p); }
  static void store_int(int32_t* p, Int v) { _mm512_storeu_si512(p, v); }
  static Int broadcast_int(const uint8_t* p) {
    return broadcast4(reinterpret_cast<const int8_t*>(p));
  }
  // sum + the products of unsigned a and signed w, four to a lane.
  static Int dot(Int sum, Int a, Bytes w) { return dpbusd(sum, a, w); }
  static Int add_codes(Int sum, Bytes w) { return dpbusd(sum, _mm512_set1_epi8(1), w); }
  static Int times_minus_128(Int v) {
    return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(v, 7));
  }
  struct Rounding {
    __m512i scale[2], min[2];  // of the words that unpacklo and unpackhi make of the bytes
  };
  // code -> round(code * scale + min); signed codes have no min and |scale| <= 1.
  template <bool kSigned>
  static Rounding rounding(Float scale, Float min) {
    const __m512i s = words(_mm512_mul_ps(scale, _mm512_set1_ps(kSigned ? 16384.0f : 128.0f)));
    __m512i m = _mm512_set1_epi16(64);
    if constexpr (!kSigned) {
      m = words(_mm512_fmadd_ps(min, _mm512_set1_ps(128.0f), _mm512_set1_ps(64.0f)));
    }
    return {{_mm512_shuffle_epi32(s, static_cast<_MM_PERM_ENUM>(0x50)),
             _mm512_shuffle_epi32(s, static_cast<_MM_PERM_ENUM>(0xfa))},
            {_mm512_shuffle_epi32(m, static_cast<_MM_PERM_ENUM>(0x50)),
             _mm512_shuffle_epi32(m, static_cast<_MM_PERM_ENUM>(0xfa))}};
  }
  template <bool kSigned>
  static Bytes round_codes(Bytes w, const Rounding& r) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i half[2];
    if constexpr (kSigned) {
      half[0] = _mm512_mulhrs_epi16(_mm512_unpacklo_epi8(zero, w), r.scale[0]);
      half[1] = _mm512_mulhrs_epi16(_mm512_unpackhi_epi8(zero, w), r.scale[1]);
    } else {
      half[0] = _mm512_mullo_epi16(_mm512_unpacklo_epi8(w, zero), r.scale[0]);
      half[1] = _mm512_mullo_epi16(_mm512_unpackhi_epi8(w, zero), r.scale[1]);
    }
    return _mm512_packs_epi16(_mm512_srai_epi16(_mm512_add_epi16(half[0], r.min[0]), 7),
                              _mm512_srai_epi16(_mm512_add_epi16(half[1], r.min[1]), 7));
  }

 private:
  template <int kShift>
  static __m512i nibbles(const void* p) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    return _mm512_and_si512(_mm512_srli_epi32(bytes, kShift), _mm512_set1_epi32(15));
  }
  // Both words of a lane are the lane's float, rounded.
  static __m512i words(Float v) {
    const __m512i ints = _mm512_cvtps_epi32(v);
    return _mm512_or_si512(_mm512_and_si512(ints, _mm512_set1_epi32(0xffff)),
                           _mm512_slli_epi32(ints, 16));
  }
};

}  // namespace
}  // namespace wok
