#include "bench/peak_loops.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace wok::bench {
namespace {

#if defined(__x86_64__)

constexpr int kChains = 12;  // more than latency times the pipes of any core we know

// The empty assembly makes the compiler believe each accumulator is read, so it keeps the loop.
#define WOK_KEEP(value) asm volatile("" : "+x"(value))

__attribute__((target("avx512f,avx512vnni"))) void int8_vnni512(int64_t iterations) {
  __m512i acc[kChains] = {};
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m512i& x : acc) {
      x = _mm512_dpbusd_epi32(x, a, b);
      WOK_KEEP(x);
    }
  }
}

__attribute__((target("avx2,avxvnni"))) void int8_vnni256(int64_t iterations) {
  __m256i acc[kChains] = {};
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m256i& x : acc) {
      x = _mm256_dpbusd_avx_epi32(x, a, b);
      WOK_KEEP(x);
    }
  }
}

// Without VNNI an int8 product takes three instructions.
__attribute__((target("avx2"))) void int8_avx2(int64_t iterations) {
  __m256i acc[kChains] = {};
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m256i& x : acc) {
      WOK_KEEP(a);
      x = _mm256_add_epi32(x, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
      WOK_KEEP(x);
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void bf16_512(int64_t iterations) {
  __m512 acc[kChains] = {};
  const __m512i ones = _mm512_set1_epi32(0x3f803f80);
  const auto a = (__m512bh)ones;  // NOLINT: a vector cast has no other spelling
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m512& x : acc) {
      x = _mm512_dpbf16_ps(x, a, a);
      WOK_KEEP(x);
    }
  }
}

__attribute__((target("avx512f"))) void fp32_512(int64_t iterations) {
  __m512 acc[kChains] = {};
  const __m512 a = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m512& x : acc) {
      x = _mm512_fmadd_ps(x, a, a);
      WOK_KEEP(x);
    }
  }
}

__attribute__((target("avx2,fma"))) void fp32_256(int64_t iterations) {
  __m256 acc[kChains] = {};
  const __m256 a = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < iterations; ++i) {
    for (__m256& x : acc) {
      x = _mm256_fmadd_ps(x, a, a);
      WOK_KEEP(x);
    }
  }
}

constexpr size_t kPrefetchBytes = 2048;

__attribute__((target("avx512f"))) uint64_t read_512(const void* data, size_t bytes) {
  const auto* p = static_cast<const char*>(data);
  __m512i acc[4] = {};
  for (size_t at = 0; at + 256 <= bytes; at += 256) {
    for (int i = 0; i < 4; ++i) {
      _mm_prefetch(p + at + 64 * i + kPrefetchBytes, _MM_HINT_T0);
      acc[i] = _mm512_xor_si512(acc[i], _mm512_loadu_si512(p + at + 64 * i));
    }
  }
  uint64_t lanes[8];
  _mm512_storeu_si512(
      lanes, _mm512_xor_si512(_mm512_xor_si512(acc[0], acc[1]), _mm512_xor_si512(acc[2], acc[3])));
  return lanes[0] ^ lanes[7];
}

__attribute__((target("avx2"))) uint64_t read_256(const void* data, size_t bytes) {
  const auto* p = static_cast<const char*>(data);
  __m256i acc[4] = {};
  for (size_t at = 0; at + 128 <= bytes; at += 128) {
    _mm_prefetch(p + at + kPrefetchBytes, _MM_HINT_T0);
    _mm_prefetch(p + at + kPrefetchBytes + 64, _MM_HINT_T0);
    for (int i = 0; i < 4; ++i) {
      acc[i] = _mm256_xor_si256(
          acc[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at + 32 * i)));
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(acc[0], acc[1]), _mm256_xor_si256(acc[2], acc[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0) ^ _mm256_extract_epi64(all, 2));
}

// clang 14 has no name for these in __builtin_cpu_supports.
bool leaf7_1_eax(unsigned bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && ((a >> bit) & 1) != 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0;
}

#endif

}  // namespace

std::vector<PeakLoop> peak_loops() {
  std::vector<PeakLoop> loops;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  const auto add = [&](bool present, const char* name, const char* instruction, double ops,
                       void (*run)(int64_t)) {
    if (present) loops.push_back({name, instruction, ops * kChains, run});
  };
  add(has_avx512() && __builtin_cpu_supports("avx512vnni") != 0, "int8", "vpdpbusd zmm", 128,
      int8_vnni512);
  add(avx2 && leaf7_1_eax(4), "int8", "vpdpbusd ymm", 64, int8_vnni256);
  add(avx2, "int8", "vpmaddubsw ymm", 64, int8_avx2);
  add(has_avx512() && leaf7_1_eax(5), "bf16", "vdpbf16ps zmm", 64, bf16_512);
  add(has_avx512(), "fp32", "vfmadd zmm", 32, fp32_512);
  add(avx2 && __builtin_cpu_supports("fma") != 0, "fp32", "vfmadd ymm", 16, fp32_256);
#endif
  return loops;
}

uint64_t read_all(const void* data, size_t bytes) {
#if defined(__x86_64__)
  if (has_avx512()) return read_512(data, bytes);
  if (__builtin_cpu_supports("avx2") != 0) return read_256(data, bytes);
#endif
  uint64_t sum = 0;
  const auto* p = static_cast<const uint64_t*>(data);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) sum ^= p[i];
  return sum;
}

}  // namespace wok::bench
