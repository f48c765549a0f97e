// The small vector type the bodies are written in, for AVX-512 F/BW/DQ/VL with VNNI. Include only
// from a translation unit compiled with those flags; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace wok {
namespace {

struct Simd {
  static constexpr int kWidth = 16;
  static constexpr const char* kName = "avx512";
  using Float = __m512;
  using Int = __m512i;
  using Bytes = __m512i;

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
  // VNNI sums four products into 32 bits at once, so kDepth does not matter here.
  template <int kDepth, int kGroups>
  static Int dot_unsigned(const Bytes* w, const int8_t* a) {
    __m512i total = _mm512_setzero_si512();
    for (int g = 0; g < kGroups; ++g) {
      total = _mm512_dpbusd_epi32(total, w[g], broadcast4(a + 4 * g));
    }
    return total;
  }
  // dpbusd wants one unsigned operand: w + 128 for the codes, and 128 * sum(a) taken off again.
  template <int kGroups>
  static Int dot_signed(const Bytes* w, const int8_t* a) {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i total = _mm512_setzero_si512();
    __m512i excess = _mm512_setzero_si512();
    for (int g = 0; g < kGroups; ++g) {
      const __m512i x = broadcast4(a + 4 * g);
      total = _mm512_dpbusd_epi32(total, _mm512_xor_si512(w[g], offset), x);
      excess = _mm512_dpbusd_epi32(excess, offset, x);
    }
    return _mm512_sub_epi32(total, excess);
  }
};

}  // namespace
}  // namespace wok
