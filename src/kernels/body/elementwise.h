// Norm, rotation, activation, quantization and vocabulary scans, over the small vector type Simd.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace wok {
namespace {

using Float = Simd::Float;
constexpr int kW = Simd::kWidth;

// e^x with about 1 ulp in range (Cephes' polynomial); below -87 it is 0 within float's normals.
inline Float exp_body(Float x) {
  x = Simd::min(x, Simd::set1(88.0f));
  x = Simd::max(x, Simd::set1(-87.0f));
  const Float n = Simd::round(Simd::mul(x, Simd::set1(1.44269504088896341f)));
  Float r = Simd::fma(n, Simd::set1(-0.693359375f), x);
  r = Simd::fma(n, Simd::set1(2.12194440e-4f), r);
  Float p = Simd::set1(1.9875691500e-4f);
  p = Simd::fma(p, r, Simd::set1(1.3981999507e-3f));
  p = Simd::fma(p, r, Simd::set1(8.3334519073e-3f));
  p = Simd::fma(p, r, Simd::set1(4.1665795894e-2f));
  p = Simd::fma(p, r, Simd::set1(1.6666665459e-1f));
  p = Simd::fma(p, r, Simd::set1(5.0000001201e-1f));
  p = Simd::fma(p, Simd::mul(r, r), Simd::add(r, Simd::set1(1.0f)));
  return Simd::mul(p, Simd::pow2(n));
}

// 2^x for x <= 0 with about 2 ulp (Taylor in x ln 2); below -126 it stays at float's least normal.
inline Float exp2_body(Float x) {
  x = Simd::max(x, Simd::set1(-126.0f));
  const Float n = Simd::round(x);
  const Float r = Simd::sub(x, n);
  Float p = Simd::set1(1.540353039e-4f);
  p = Simd::fma(p, r, Simd::set1(1.333355815e-3f));
  p = Simd::fma(p, r, Simd::set1(9.618129108e-3f));
  p = Simd::fma(p, r, Simd::set1(5.550410866e-2f));
  p = Simd::fma(p, r, Simd::set1(2.402265070e-1f));
  p = Simd::fma(p, r, Simd::set1(6.931471806e-1f));
  p = Simd::fma(p, r, Simd::set1(1.0f));
  return Simd::scale2(p, n);
}

// Calls op(Float) -> Float on n elements; the last few go through a padded buffer.
template <class Op>
inline void map_row(const float* x, int32_t n, float* y, Op op) {
  int32_t i = 0;
  for (; i + kW <= n; i += kW) Simd::store(y + i, op(Simd::load(x + i)));
  if (i < n) {
    float in[kW] = {}, out[kW];
    for (int32_t j = i; j < n; ++j) in[j - i] = x[j];
    Simd::store(out, op(Simd::load(in)));
    for (int32_t j = i; j < n; ++j) y[j] = out[j - i];
  }
}

template <class Op>
inline void zip_row(const float* a, const float* b, int32_t n, float* y, Op op) {
  int32_t i = 0;
  for (; i + kW <= n; i += kW) Simd::store(y + i, op(Simd::load(a + i), Simd::load(b + i)));
  if (i < n) {
    float left[kW] = {}, right[kW] = {}, out[kW];
    for (int32_t j = i; j < n; ++j) left[j - i] = a[j], right[j - i] = b[j];
    Simd::store(out, op(Simd::load(left), Simd::load(right)));
    for (int32_t j = i; j < n; ++j) y[j] = out[j - i];
  }
}

void rmsnorm(const float* x, const float* weight, float eps, int32_t n, float* y) {
  Float squares = Simd::zero();
  int32_t i = 0;
  for (; i + kW <= n; i += kW) {
    const Float v = Simd::load(x + i);
    squares = Simd::fma(v, v, squares);
  }
  float sum = Simd::reduce_add(squares);
  for (; i < n; ++i) sum += x[i] * x[i];
  const Float inverse = Simd::set1(1.0f / __builtin_sqrtf(sum / static_cast<float>(n) + eps));
  zip_row(x, weight, n, y, [&](Float v, Float w) { return Simd::mul(Simd::mul(v, inverse), w); });
}

void layernorm(const float* x, const float* weight, const float* bias, float eps, int32_t n,
               float* y) {
  Float sums = Simd::zero();
  int32_t i = 0;
  for (; i + kW <= n; i += kW) sums = Simd::add(Simd::load(x + i), sums);
  float sum = Simd::reduce_add(sums);
  for (; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  const Float centre = Simd::set1(mean);
  Float squares = Simd::zero();
  for (i = 0; i + kW <= n; i += kW) {
    const Float v = Simd::sub(Simd::load(x + i), centre);
    squares = Simd::fma(v, v, squares);
  }
  float square = Simd::reduce_add(squares);
  for (; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  const float scale = 1.0f / __builtin_sqrtf(square / static_cast<float>(n) + eps);
  const Float inverse = Simd::set1(scale);
  for (i = 0; i + kW <= n; i += kW) {
    const Float v = Simd::mul(Simd::sub(Simd::load(x + i), centre), inverse);
    Simd::store(y + i, Simd::fma(v, Simd::load(weight + i), Simd::load(bias + i)));
  }
  for (; i < n; ++i) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

// v Phi(v) = max(v, 0) - |v| tail, where tail = erfc(|v| / sqrt(2)) / 2 by formula 7.1.26 of
// Abramowitz and Stegun's Handbook of Mathematical Functions: off by less than 1e-7.
void gelu_bias(const float* x, const float* bias, int32_t n, float* y) {
  zip_row(x, bias, n, y, [](Float a, Float b) {
    const Float v = Simd::add(a, b), size = Simd::abs(v), one = Simd::set1(1.0f);
    const Float t = Simd::div(one, Simd::fma(size, Simd::set1(0.3275911f * 0.70710678f), one));
    Float p = Simd::set1(0.5f * 1.061405429f);
    p = Simd::fma(p, t, Simd::set1(0.5f * -1.453152027f));
    p = Simd::fma(p, t, Simd::set1(0.5f * 1.421413741f));
    p = Simd::fma(p, t, Simd::set1(0.5f * -0.284496736f));
    p = Simd::fma(p, t, Simd::set1(0.5f * 0.254829592f));
    const Float e = exp_body(Simd::mul(Simd::mul(v, v), Simd::set1(-0.5f)));
    const Float tail = Simd::mul(Simd::mul(p, t), e);
    return Simd::sub(Simd::max(v, Simd::zero()), Simd::mul(size, tail));
  });
}

void quantize(const float* x, int32_t n, int32_t e, int8_t* q, ActivationBlock* blocks) {
  constexpr int kVectors = 32 / kW;
  for (int32_t b = 0; b < n / 32; ++b, q += 32 * e, blocks += e) {
    Float v[kVectors];
    Float largest = Simd::zero();
    for (int i = 0; i < kVectors; ++i) {
      v[i] = Simd::load(x + 32 * b + i * kW);
      largest = Simd::max(largest, Simd::abs(v[i]));
    }
    const float absmax = Simd::reduce_max(largest);
    const float inverse = absmax > 0 ? 127.0f / absmax : 0.0f;
    const float scale = absmax / 127.0f;
    Float total[2] = {Simd::zero(), Simd::zero()};
    for (int i = 0; i < kVectors; ++i) {
      const Float rounded = Simd::round(Simd::mul(v[i], Simd::set1(inverse)));
      Simd::store_int8(q + i * kW, rounded);
      total[i * kW / 16] = Simd::add(total[i * kW / 16], rounded);
    }
    // Sums of integers below 2^24: exact in float, whatever the order.
    const float first = Simd::reduce_add(total[0]), second = Simd::reduce_add(total[1]);
    *blocks = {scale,
               scale * (first + second),
               static_cast<int32_t>(first + second) * -8,
               {static_cast<int32_t>(first) * -32, static_cast<int32_t>(second) * -32}};
  }
}

void rope_interleaved(float* x, const float* cos, const float* sin, int32_t n) {
  for (int32_t i = 0; i < n / 2; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void rope_halves(float* x, const float* cos, const float* sin, int32_t n) {
  const int32_t half = n / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    x[i] = a * cos[i] - b * sin[i];
    x[i + half] = a * sin[i] + b * cos[i];
  }
}

inline Float sigmoid(Float x) {
  const Float one = Simd::set1(1.0f);
  return Simd::div(one, Simd::add(one, exp_body(Simd::sub(Simd::zero(), x))));
}

void silu_mul(const float* gate, const float* up, int32_t n, float* y) {
  zip_row(gate, up, n, y, [](Float g, Float u) { return Simd::mul(Simd::mul(g, sigmoid(g)), u); });
}

// 0.5 g (1 + tanh(t)) = g * sigmoid(2t), t = sqrt(2/pi) (g + 0.044715 g^3)  (arXiv 1606.08415).
void gelu_mul(const float* gate, const float* up, int32_t n, float* y) {
  zip_row(gate, up, n, y, [](Float g, Float u) {
    const Float cube = Simd::mul(Simd::mul(g, g), g);
    const Float t =
        Simd::mul(Simd::set1(2 * 0.7978845608028654f), Simd::fma(Simd::set1(0.044715f), cube, g));
    return Simd::mul(Simd::mul(g, sigmoid(t)), u);
  });
}

void clamped_glu(const float* gate, const float* up, int32_t n, float* y) {
  const Float limit = Simd::set1(kGluLimit), low = Simd::set1(-kGluLimit);
  zip_row(gate, up, n, y, [&](Float g, Float u) {
    g = Simd::min(g, limit);
    u = Simd::max(Simd::min(u, limit), low);
    const Float gated = Simd::mul(g, sigmoid(Simd::mul(g, Simd::set1(kGluSlope))));
    return Simd::fma(gated, u, gated);
  });
}

// cap * tanh(x / cap), as cap - 2 cap / (1 + e^(2 x / cap)): off by some 1e-7 of the cap at most.
void soft_cap(float* x, float cap, int32_t n) {
  const Float one = Simd::set1(1.0f), to_exponent = Simd::set1(2 / cap);
  const Float top = Simd::set1(cap), span = Simd::set1(2 * cap);
  map_row(x, n, x, [&](Float v) {
    const Float e = exp_body(Simd::mul(v, to_exponent));
    return Simd::sub(top, Simd::div(span, Simd::add(one, e)));
  });
}

void add_rows(const float* x, int32_t n, float* y) {
  zip_row(x, y, n, y, [](Float a, Float b) { return Simd::add(a, b); });
}

float max_row(const float* x, int32_t n) {
  float best = -__builtin_inff();
  int32_t i = 0;
  if (n >= kW) {
    Float m = Simd::set1(best);
    // max(v, m): where v is NaN the second operand stays.
    for (; i + kW <= n; i += kW) m = Simd::max(Simd::load(x + i), m);
    best = Simd::reduce_max(m);
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

int32_t argmax(const float* x, int32_t n) {
  const float best = max_row(x, n);
  for (int32_t i = 0; i < n; ++i) {
    if (x[i] == best) return i;
  }
  return 0;  // all NaN
}

double exp_sum(const float* x, float shift, float inv_temperature, int32_t n, float* y) {
  const Float s = Simd::set1(shift), t = Simd::set1(inv_temperature);
  double total = 0;
  constexpr int32_t kChunk = 1024;  // float partial sums of a chunk, double over chunks
  for (int32_t begin = 0; begin < n; begin += kChunk) {
    const int32_t len = n - begin < kChunk ? n - begin : kChunk;
    map_row(x + begin, len, y + begin,
            [&](Float v) { return exp_body(Simd::mul(Simd::sub(v, s), t)); });
    Float partial = Simd::zero();
    int32_t i = 0;
    for (; i + kW <= len; i += kW) partial = Simd::add(partial, Simd::load(y + begin + i));
    float rest = Simd::reduce_add(partial);
    for (; i < len; ++i) rest += y[begin + i];
    total += rest;
  }
  return total;
}

}  // namespace
}  // namespace wok
