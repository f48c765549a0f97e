// The formats of super-blocks of 256 weights, whose blocks have small whole numbers for scales:
// Q2_K to Q6_K, IQ4_XS. Layouts: src/quant.
//
// Each block is fitted by itself; the largest scale decides the common factor; then, twice over,
// each block tries the whole numbers next to its own, and the common factor is fitted to all codes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quantizer/each_block.h"
#include "quantizer/encode.h"
#include "quantizer/fit.h"

namespace wok {
namespace {

constexpr int kWeights = 256, kRounds = 2;

float as_half(float value) {
  return half_to_float(float_to_half(value));
}

// A super-block as whole numbers: of block i the weights are d * scale[i] * value(code) for
// symmetric formats, d * scale[i] * code - dmin * min[i] for the others.
struct Super {
  float d = 0, dmin = 0;
  int scale[16] = {}, min[16] = {};
  int8_t codes[kWeights] = {};
};

// kRound(x, w, n, scale, codes) rounds to codes and returns the error; kFit finds a block's scale;
// value_of(code) is what a code is multiplied by. Scales lie in [lowest, highest].
template <class Fit, class Round, class ValueOf>
Super super_symmetric(const float* x, const float* w, int n, int lowest, int highest,
                      const Fit& fit, const Round& round, const ValueOf& value_of) {
  const int blocks = kWeights / n;
  Super s;
  float scales[16], largest = 0;
  for (int b = 0; b < blocks; ++b) {
    scales[b] = fit(x + b * n, w + b * n);
    if (std::fabs(scales[b]) > std::fabs(largest)) largest = scales[b];
  }
  if (largest == 0) return s;
  s.d = as_half(largest / static_cast<float>(lowest));
  if (s.d == 0) return s;
  for (int b = 0; b < blocks; ++b) {
    s.scale[b] = std::clamp(static_cast<int>(std::lrintf(scales[b] / s.d)), lowest, highest);
  }
  for (int turn = 0; turn < kRounds; ++turn) {
    double xv = 0, vv = 0;
    for (int b = 0; b < blocks; ++b) {
      const float* xb = x + b * n;
      const float* wb = w + b * n;
      int best = s.scale[b];
      float least = INFINITY;
      for (int c = s.scale[b] - 1; c <= s.scale[b] + 1; ++c) {
        if (c < lowest || c > highest) continue;
        const float error = round(xb, wb, s.d * static_cast<float>(c), nullptr);
        if (error < least) {
          least = error;
          best = c;
        }
      }
      s.scale[b] = best;
      round(xb, wb, s.d * static_cast<float>(best), s.codes + b * n);
      for (int i = 0; i < n; ++i) {
        const double v = double{1} * best * value_of(s.codes[b * n + i]);
        xv += wb[i] * v * xb[i];
        vv += wb[i] * v * v;
      }
    }
    if (vv > 0 && turn + 1 < kRounds) s.d = as_half(static_cast<float>(xv / vv));
    if (s.d == 0) return {};
  }
  return s;
}

Super super_affine(const float* x, const float* w, int n, int hi, int most) {
  const int blocks = kWeights / n;
  Super s;
  Affine fits[16];
  float scale = 0, min = 0;
  for (int b = 0; b < blocks; ++b) {
    fits[b] = fit_affine(x + b * n, w + b * n, n, hi);
    scale = std::max(scale, fits[b].scale);
    min = std::max(min, fits[b].min);
  }
  s.d = as_half(scale / static_cast<float>(most));
  s.dmin = as_half(min / static_cast<float>(most));
  const auto part = [&](float value, float unit) {
    return unit > 0 ? std::clamp(static_cast<int>(std::lrintf(value / unit)), 0, most) : 0;
  };
  for (int b = 0; b < blocks; ++b) {
    s.scale[b] = part(fits[b].scale, s.d);
    s.min[b] = part(fits[b].min, s.dmin);
  }
  for (int turn = 0; turn < kRounds; ++turn) {
    // Sums of the two factors' least squares: x ≈ d * u - dmin * v.
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
    for (int b = 0; b < blocks; ++b) {
      const float* xb = x + b * n;
      const float* wb = w + b * n;
      const auto factors = [&](int sc, int mn) {
        return Affine{s.d * static_cast<float>(sc), s.dmin * static_cast<float>(mn)};
      };
      const int sc = s.scale[b], mn = s.min[b];
      float least = INFINITY;
      for (int i = std::max(0, sc - 1); i <= std::min(most, sc + 1); ++i) {
        for (int j = std::max(0, mn - 1); j <= std::min(most, mn + 1); ++j) {
          const float error = round_affine(xb, wb, n, factors(i, j), hi, nullptr);
          if (error < least) {
            least = error;
            s.scale[b] = i;
            s.min[b] = j;
          }
        }
      }
      int8_t* codes = s.codes + b * n;
      round_affine(xb, wb, n, factors(s.scale[b], s.min[b]), hi, codes);
      for (int i = 0; i < n; ++i) {
        const double u = double{1} * s.scale[b] * codes[i], v = s.min[b];
        uu += wb[i] * u * u;
        uv += wb[i] * u * v;
        vv += wb[i] * v * v;
        xu += wb[i] * u * xb[i];
        xv += wb[i] * v * xb[i];
      }
    }
    if (turn + 1 == kRounds) break;
    const double determinant = uu * vv - uv * uv;
    if (vv == 0 && uu > 0) {
      s.d = as_half(static_cast<float>(xu / uu));
    } else if (determinant > 1e-12 * uu * vv) {
      const double d = (xu * vv - xv * uv) / determinant;
      const double dmin = (xu * uv - xv * uu) / determinant;
      if (d > 0 && dmin >= 0) {
        s.d = as_half(static_cast<float>(d));
        s.dmin = as_half(static_cast<float>(dmin));
      }
    }
  }
  return s;
}

// The same; out is zeroed, for codes are put together from their bits.
template <class Fn>
void each_super(const float* row, const float* importance, int64_t n, int bytes, uint8_t* out,
                const Fn& fn) {
  std::memset(out, 0, n / kWeights * bytes);
  each_block<kWeights>(row, importance, n, bytes, out, fn);
}

Super fit_k(const float* x, const float* w, int n, int lo, int lowest, int highest) {
  const int hi = -lo - 1;
  return super_symmetric(
      x, w, n, lowest, highest,
      [&](const float* xb, const float* wb) { return fit_symmetric(xb, wb, n, lo, hi); },
      [&](const float* xb, const float* wb, float scale, int8_t* codes) {
        return round_symmetric(xb, wb, n, scale, lo, hi, codes);
      },
      [](int8_t code) { return int{code}; });
}

// The 12 bytes of 6-bit scales and minima of Q4_K and Q5_K.
void put_k_scales(const Super& s, uint8_t* out) {
  for (int j = 0; j < 4; ++j) {
    out[j] = static_cast<uint8_t>(s.scale[j] | (s.scale[j + 4] >> 4) << 6);
    out[j + 4] = static_cast<uint8_t>(s.min[j] | (s.min[j + 4] >> 4) << 6);
    out[j + 8] = static_cast<uint8_t>((s.scale[j + 4] & 15) | (s.min[j + 4] & 15) << 4);
  }
}

// A run of 32 bytes holds four times 32 two-bit codes; lower bits of wider codes.
void put_pairs(const int8_t* codes, int offset, uint8_t* out) {
  for (int i = 0; i < kWeights; ++i) {
    const int part = i / 32;
    out[32 * (part / 4) + i % 32] |=
        static_cast<uint8_t>(((codes[i] + offset) & 3) << (2 * (part % 4)));
  }
}

// Q4_K, and Q5_K, which has 32 bytes of fifth bits before the nibbles.
template <int kHi>
void q4_or_q5(const float* row, const float* importance, int64_t n, uint8_t* out) {
  constexpr bool kFive = kHi == 31;
  each_super(row, importance, n, kFive ? 176 : 144, out, [](auto* x, auto* w, uint8_t* to) {
    const Super s = super_affine(x, w, 32, kHi, 63);
    put_half(to, s.d);
    put_half(to + 2, s.dmin);
    put_k_scales(s, to + 4);
    for (int i = 0; i < kWeights; ++i) {
      const int part = i / 32;
      if (kFive) to[16 + i % 32] |= static_cast<uint8_t>(s.codes[i] >> 4 << part);
      to[(kFive ? 48 : 16) + 32 * (part / 2) + i % 32] |=
          static_cast<uint8_t>((s.codes[i] & 15) << (4 * (part % 2)));
    }
  });
}

}  // namespace

namespace encoders {

void q2_k(const float* row, const float* importance, int64_t n, uint8_t* out) {
  each_super(row, importance, n, 84, out, [](auto* x, auto* w, uint8_t* to) {
    const Super s = super_affine(x, w, 16, 3, 15);
    for (int b = 0; b < 16; ++b) to[b] = static_cast<uint8_t>(s.scale[b] | s.min[b] << 4);
    put_pairs(s.codes, 0, to + 16);
    put_half(to + 80, s.d);
    put_half(to + 82, s.dmin);
  });
}

void q3_k(const float* row, const float* importance, int64_t n, uint8_t* out) {
  each_super(row, importance, n, 110, out, [](auto* x, auto* w, uint8_t* to) {
    const Super s = fit_k(x, w, 16, -4, -32, 31);
    for (int i = 0; i < kWeights; ++i) {
      to[i % 32] |= static_cast<uint8_t>((s.codes[i] + 4) >> 2 << (i / 32));
    }
    put_pairs(s.codes, 4, to + 32);
    for (int b = 0; b < 16; ++b) {
      const int code = s.scale[b] + 32;
      to[96 + b % 8] |= static_cast<uint8_t>((code & 15) << (b < 8 ? 0 : 4));
      to[104 + b % 4] |= static_cast<uint8_t>(code >> 4 << (2 * (b / 4)));
    }
    put_half(to + 108, s.d);
  });
}

void q4_k(const float* row, const float* importance, int64_t n, uint8_t* out) {
  q4_or_q5<15>(row, importance, n, out);
}

void q5_k(const float* row, const float* importance, int64_t n, uint8_t* out) {
  q4_or_q5<31>(row, importance, n, out);
}

void q6_k(const float* row, const float* importance, int64_t n, uint8_t* out) {
  each_super(row, importance, n, 210, out, [](auto* x, auto* w, uint8_t* to) {
    const Super s = fit_k(x, w, 16, -32, -128, 127);
    for (int i = 0; i < kWeights; ++i) {
      const int half = i / 128, run = i / 32 % 4, code = s.codes[i] + 32;
      to[64 * half + 32 * (run % 2) + i % 32] |=
          static_cast<uint8_t>((code & 15) << (run < 2 ? 0 : 4));
      to[128 + 32 * half + i % 32] |= static_cast<uint8_t>(code >> 4 << (2 * run));
    }
    for (int b = 0; b < 16; ++b) to[192 + b] = static_cast<uint8_t>(s.scale[b]);
    put_half(to + 208, s.d);
  });
}

void iq4_xs(const float* row, const float* importance, int64_t n, uint8_t* out) {
  const int8_t* table = kWeightFormat_iq4_xs.codebook;
  each_super(row, importance, n, 136, out, [&](auto* x, auto* w, uint8_t* to) {
    const Super s = super_symmetric(
        x, w, 32, -32, 31,
        [&](const float* xb, const float* wb) { return fit_table(xb, wb, 32, table); },
        [&](const float* xb, const float* wb, float scale, int8_t* codes) {
          return round_table(xb, wb, 32, scale, table, codes);
        },
        [&](int8_t code) { return int{table[code]}; });
    put_half(to, s.d);
    uint16_t high = 0;
    for (int b = 0; b < 8; ++b) {
      const int code = s.scale[b] + 32;
      to[4 + b / 2] |= static_cast<uint8_t>((code & 15) << (4 * (b % 2)));
      high = static_cast<uint16_t>(high | (code >> 4) << (2 * b));
      for (int j = 0; j < 16; ++j) {
        to[8 + 16 * b + j] =
            static_cast<uint8_t>(s.codes[32 * b + j] | s.codes[32 * b + 16 + j] << 4);
      }
    }
    std::memcpy(to + 2, &high, sizeof(high));
  });
}

}  // namespace encoders
}  // namespace wok
