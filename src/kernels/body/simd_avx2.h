// The small vector type the bodies are written in, for AVX2 + FMA + F16C. Include only from a
// translation unit compiled with those flags; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/body/unroll.h"

namespace wok {
namespace {

struct Simd {
  // Rows of an exact tile: with two panels their sums fill the registers.
  static constexpr int kExactTileRows = 3;
  // Rows that panels are streamed for, and panels at once; rows where it is one (StreamTile).
  static constexpr int kStreamRows = 4, kStreamPanels = 2, kOneStreamRows = 4;
  static constexpr int kWidth = 8;  // 32-bit lanes
#if defined(__AVXVNNI__)
  static constexpr const char* kName = "avxvnni";
#else
  static constexpr const char* kName = "avx2";
#endif
  using Float = __m256;
  using Int = __m256i;  // int32 lanes
#if defined(__AVXVNNI__)
  static constexpr int kSignedOffset = 128;
  static constexpr bool kHasGroups = true;
  static constexpr bool kHasVnni = true;
#else
  // Without VNNI a signed product takes five instructions: exact blocks are faster.
  static constexpr int kSignedOffset = 0;
  static constexpr bool kHasGroups = false;
  static constexpr bool kHasVnni = false;
#endif
  using Bytes = __m256i;  // kWidth * 4 bytes

  static Float zero() {
    return _mm256_setzero_ps();
  }
  static Float set1(float v) {
    return _mm256_set1_ps(v);
  }
  static Float load(const float* p) {
    return _mm256_loadu_ps(p);
  }
  static void store(float* p, Float v) {
    _mm256_storeu_ps(p, v);
  }
  static Float add(Float a, Float b) {
    return _mm256_add_ps(a, b);
  }
  static Float sub(Float a, Float b) {
    return _mm256_sub_ps(a, b);
  }
  static Float mul(Float a, Float b) {
    return _mm256_mul_ps(a, b);
  }
  static Float div(Float a, Float b) {
    return _mm256_div_ps(a, b);
  }
  static Float fma(Float a, Float b, Float c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static Float max(Float a, Float b) {
    return _mm256_max_ps(a, b);
  }
  static Float min(Float a, Float b) {
    return _mm256_min_ps(a, b);
  }
  static Float abs(Float a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
  }
  static Float round(Float a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Int to_int(Float a) {
    return _mm256_cvtps_epi32(a);
  }
  static Float to_float(Int a) {
    return _mm256_cvtepi32_ps(a);
  }
  // 2^n for integral n in [-126, 127].
  static Float pow2(Float n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  // v * 2^n, n whole.
  static Float scale2(Float v, Float n) {
    return mul(v, pow2(n));
  }
  static float reduce_add(Float v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float reduce_max(Float v) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }

  static Float load_half(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static void store_half(void* p, Float v) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float load_bf16(const void* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))), 16));
  }
  static void store_bf16(void* p, Float v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i packed =
        _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0b00001000);
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  // kWidth integral floats in [-127, 127] to kWidth bytes.
  static void store_int8(int8_t* p, Float v) {
    const __m256i ints = _mm256_cvtps_epi32(v);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }

  static void store_uint8(uint8_t* p, Float v) {
    const __m256i ints = _mm256_cvtps_epi32(v);
    const __m128i narrow =
        _mm_packus_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(narrow, narrow));
  }
  static Float load_u8(const void* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
  }
  static Float load_i8(const void* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
  }

  // The low and the high halves of bytes.
  static Float load_low_u4(const void* p) {
    return _mm256_cvtepi32_ps(nibbles<0>(p));
  }
  static Float load_high_u4(const void* p) {
    return _mm256_cvtepi32_ps(nibbles<4>(p));
  }

  // A table of 16 bytes, and its entries that codes 0..15 name.
  static Bytes load_table(const int8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Bytes look_up(Bytes table, Bytes codes) {
    return _mm256_shuffle_epi8(table, codes);
  }

  static Bytes load_bytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static void store_bytes(void* p, Bytes v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
  }
  static Bytes or_bytes(Bytes a, Bytes b) {
    return _mm256_or_si256(a, b);
  }
  static Bytes low_nibbles(Bytes v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
  }
  static Bytes high_nibbles(Bytes v) {
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
  }
  // Moves bits up (positive) or down and keeps those of `mask` in each byte; the mask must hold
  // only bits that come from the same byte.
  template <int kUp>
  static Bytes shift_masked(Bytes v, int mask) {
    if constexpr (kUp > 0) v = _mm256_slli_epi16(v, kUp);
    if constexpr (kUp < 0) v = _mm256_srli_epi16(v, -kUp);
    return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(mask)));
  }

#if defined(__AVXVNNI__)
  // sum + the products of unsigned a and signed b; an instruction that changes its operand, for
  // GCC's sake (simd_avx512.h).
  static Int dpbusd(Int sum, Int a, Bytes b) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }
#endif
  static __m256i broadcast4(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  // total + the sum over groups of code * activation, per lane, for unsigned codes. kDepth: how
  // many products pairs of which fit an int16 sum (8 for 4-bit codes, 4 for 5-bit, 2 for 6-bit).
  template <int kDepth, int kGroups>
  WOK_INLINE static Int dot_unsigned(Int total, const Bytes* w, const int8_t* a) {
#if defined(__AVXVNNI__)
    unrolled<kGroups>([&](auto g)
                          WOK_INLINE { total = dpbusd(total, w[g], broadcast4(a + 4 * g)); });
    return total;
#endif
    const __m256i ones = _mm256_set1_epi16(1);
    for (int g0 = 0; g0 < kGroups; g0 += kDepth) {
      __m256i sum = _mm256_maddubs_epi16(w[g0], broadcast4(a + 4 * g0));
      for (int g = g0 + 1; g < g0 + kDepth && g < kGroups; ++g) {
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[g], broadcast4(a + 4 * g)));
      }
      total = _mm256_add_epi32(total, _mm256_madd_epi16(sum, ones));
    }
    return total;
  }
  // The same for signed codes in [-128, 127]; activations are in [-127, 127]. The sign moves to the
  // activation, which has no -128: negating a code of -128 would wrap.
  template <int kGroups>
  WOK_INLINE static Int dot_signed(Int total, const Bytes* w, const int8_t* a) {
#if defined(__AVXVNNI__)
    unrolled<kGroups>([&](auto g) WOK_INLINE {
      total = dpbusd(total, offset_codes(w[g]), broadcast4(a + 4 * g));
    });
    return total;
#endif
    const __m256i ones = _mm256_set1_epi16(1);
    for (int g = 0; g < kGroups; ++g) {
      const __m256i x = broadcast4(a + 4 * g);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w[g]), _mm256_sign_epi8(x, w[g]));
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, ones));
    }
    return total;
  }

  static Bytes offset_codes(Bytes w) {
    return _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
  }
  static Int broadcast_codes(const int8_t* p) {
    return broadcast4(p);
  }
  // sum + the products of codes and activations: unsigned, or signed and moved by kSignedOffset.
  static Int dot_codes(Int sum, Bytes w, Int a) {
#if defined(__AVXVNNI__)
    return dpbusd(sum, w, a);
#else
    return dot(sum, w, a);
#endif
  }

  // For rounding codes to int8 (body/group_matmul.h), in words of 7 fraction bits.
  static Int zero_int() {
    return _mm256_setzero_si256();
  }
  static Int set1_int(int32_t v) {
    return _mm256_set1_epi32(v);
  }
  // v * 2^kBits, rounded down.
  template <int kBits>
  static Int times_power(Int v) {
    if constexpr (kBits < 0) return _mm256_srai_epi32(v, -kBits);
    return _mm256_slli_epi32(v, kBits < 0 ? 0 : kBits);
  }
  static Int load_int(const int32_t* p) {
    return load_bytes(p);
  }
  static void store_int(int32_t* p, Int v) {
    store_bytes(p, v);
  }
  static Int broadcast_int(const uint8_t* p) {
    return broadcast4(reinterpret_cast<const int8_t*>(p));
  }
  // sum + the products of unsigned a and signed w, four to a lane.
  static Int dot(Int sum, Int a, Bytes w) {
#if defined(__AVXVNNI__)
    return dpbusd(sum, a, w);
#else
    // Pairs of products would overflow an int16: even and odd bytes apart.
    const __m256i low = _mm256_set1_epi16(0xff);
    const __m256i even =
        _mm256_madd_epi16(_mm256_and_si256(a, low), _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(w, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
#endif
  }
  static Int add_codes(Int sum, Bytes w) {
    return dot(sum, _mm256_set1_epi8(1), w);
  }
  static Int times_minus_128(Int v) {
    return _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(v, 7));
  }
  struct Rounding {
    __m256i scale[2], min[2];  // of the words that unpacklo and unpackhi make of the bytes
  };
  // code -> round(code * scale + min); signed codes have no min and |scale| <= 1.
  template <bool kSigned>
  static Rounding rounding(Float scale, Float min) {
    const __m256i s = words(_mm256_mul_ps(scale, _mm256_set1_ps(kSigned ? 16384.0f : 128.0f)));
    __m256i m = _mm256_set1_epi16(64);
    if constexpr (!kSigned) {
      m = words(_mm256_fmadd_ps(min, _mm256_set1_ps(128.0f), _mm256_set1_ps(64.0f)));
    }
    return {{_mm256_shuffle_epi32(s, 0x50), _mm256_shuffle_epi32(s, 0xfa)},
            {_mm256_shuffle_epi32(m, 0x50), _mm256_shuffle_epi32(m, 0xfa)}};
  }
  template <bool kSigned>
  static Bytes round_codes(Bytes w, const Rounding& r) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i half[2];
    if constexpr (kSigned) {
      half[0] = _mm256_mulhrs_epi16(_mm256_unpacklo_epi8(zero, w), r.scale[0]);
      half[1] = _mm256_mulhrs_epi16(_mm256_unpackhi_epi8(zero, w), r.scale[1]);
    } else {
      half[0] = _mm256_mullo_epi16(_mm256_unpacklo_epi8(w, zero), r.scale[0]);
      half[1] = _mm256_mullo_epi16(_mm256_unpackhi_epi8(w, zero), r.scale[1]);
    }
    return _mm256_packs_epi16(_mm256_srai_epi16(_mm256_add_epi16(half[0], r.min[0]), 7),
                              _mm256_srai_epi16(_mm256_add_epi16(half[1], r.min[1]), 7));
  }

 private:
  template <int kShift>
  static __m256i nibbles(const void* p) {
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
    return _mm256_and_si256(_mm256_srli_epi32(bytes, kShift), _mm256_set1_epi32(15));
  }
  // Both words of a lane are the lane's float, rounded.
  static __m256i words(Float v) {
    const __m256i ints = _mm256_cvtps_epi32(v);
    return _mm256_or_si256(_mm256_and_si256(ints, _mm256_set1_epi32(0xffff)),
                           _mm256_slli_epi32(ints, 16));
  }
};

}  // namespace
}  // namespace wok
