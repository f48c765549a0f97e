#include "quantizer/fit.h"

#include <algorithm>
#include <cmath>

namespace wok {
namespace {

int8_t nearest(float value, int lo, int hi) {
  return static_cast<int8_t>(std::clamp(static_cast<int>(std::lrintf(value)), lo, hi));
}

// The entry of an ascending table that is nearest: how many midpoints lie below the value.
int8_t nearest_entry(float value, const int8_t* table) {
  const float twice = 2 * value;
  int below = 0;
  for (int i = 0; i < 15; ++i) below += twice > static_cast<float>(table[i] + table[i + 1]);
  return static_cast<int8_t>(below);
}

// The weight largest in size, with its sign.
float largest_of(const float* x, int n) {
  float largest = 0;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  return largest;
}

// The scale that fits values v (of codes) to x best; `gain` is how much squared error it saves.
struct Line {
  double scale = 0, gain = 0;
};
template <class ValueOf>
Line line_through(const float* x, const float* w, int n, const ValueOf& value) {
  double xv = 0, vv = 0;
  for (int i = 0; i < n; ++i) {
    const double v = value(i);
    xv += w[i] * x[i] * v;
    vv += w[i] * v * v;
  }
  return vv > 0 ? Line{xv / vv, xv * xv / vv} : Line{};
}

// Tries inverse scales; each is followed to where its codes' own best scale leads.
template <class CodeOf>
float search_line(const float* x, const float* w, int n, float edge, const CodeOf& value_of) {
  const float largest = largest_of(x, n);
  if (std::fabs(largest) < 1e-30f) return 0;
  Line best;
  for (const float sign : {1.0f, -1.0f}) {
    for (int i = -9; i <= 9; ++i) {
      float inverse = sign * edge * (1 + 0.0125f * static_cast<float>(i)) / largest;
      for (int step = 0; step < 2; ++step) {
        const Line line = line_through(x, w, n, [&](int k) { return value_of(x[k] * inverse); });
        if (line.gain > best.gain) best = line;
        if (line.scale == 0) break;
        inverse = static_cast<float>(1 / line.scale);
      }
    }
  }
  return static_cast<float>(best.scale);
}

}  // namespace

float fit_symmetric(const float* x, const float* w, int n, int lo, int hi) {
  return search_line(x, w, n, static_cast<float>(-lo),
                     [&](float v) { return static_cast<double>(nearest(v, lo, hi)); });
}

float fit_table(const float* x, const float* w, int n, const int8_t* table) {
  return search_line(x, w, n, static_cast<float>(-table[0]),
                     [&](float v) { return static_cast<double>(table[nearest_entry(v, table)]); });
}

Affine fit_affine(const float* x, const float* w, int n, int hi) {
  const float low = std::min(0.0f, *std::min_element(x, x + n));
  const float high = *std::max_element(x, x + n);
  if (high - low < 1e-30f) return {0, -low};
  Affine best{(high - low) / static_cast<float>(hi), -low};
  float least = round_affine(x, w, n, best, hi, nullptr);
  double sum_w = 0, sum_x = 0;
  for (int i = 0; i < n; ++i) {
    sum_w += w[i];
    sum_x += double{w[i]} * x[i];
  }
  for (int trial = 0; trial <= 36; ++trial) {
    const float levels = static_cast<float>(hi) - 0.9f + 0.05f * static_cast<float>(trial);
    if (levels <= 0) continue;
    const float inverse = levels / (high - low);
    double sum_c = 0, sum_cc = 0, sum_xc = 0;
    for (int i = 0; i < n; ++i) {
      const double c = nearest((x[i] - low) * inverse, 0, hi);
      sum_c += w[i] * c;
      sum_cc += w[i] * c * c;
      sum_xc += w[i] * c * x[i];
    }
    const double determinant = sum_w * sum_cc - sum_c * sum_c;
    if (determinant <= 0) continue;
    double scale = (sum_w * sum_xc - sum_x * sum_c) / determinant;
    double min = (sum_cc * sum_x - sum_c * sum_xc) / determinant;
    if (min > 0) {  // what the formats cannot say
      min = 0;
      scale = sum_xc / sum_cc;
    }
    const Affine f{static_cast<float>(scale), static_cast<float>(-min)};
    const float error = round_affine(x, w, n, f, hi, nullptr);
    if (error < least) {
      least = error;
      best = f;
    }
  }
  return best;
}

float round_symmetric(const float* x, const float* w, int n, float scale, int lo, int hi,
                      int8_t* codes) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  float error = 0;
  for (int i = 0; i < n; ++i) {
    const int8_t code = nearest(x[i] * inverse, lo, hi);
    const float miss = x[i] - scale * static_cast<float>(code);
    error += w[i] * miss * miss;
    if (codes != nullptr) codes[i] = code;
  }
  return error;
}

float round_affine(const float* x, const float* w, int n, Affine f, int hi, int8_t* codes) {
  const float inverse = f.scale > 0 ? 1 / f.scale : 0;
  float error = 0;
  for (int i = 0; i < n; ++i) {
    const int8_t code = nearest((x[i] + f.min) * inverse, 0, hi);
    const float miss = x[i] - (f.scale * static_cast<float>(code) - f.min);
    error += w[i] * miss * miss;
    if (codes != nullptr) codes[i] = code;
  }
  return error;
}

float round_table(const float* x, const float* w, int n, float scale, const int8_t* table,
                  int8_t* codes) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  float error = 0;
  for (int i = 0; i < n; ++i) {
    const int8_t code = nearest_entry(x[i] * inverse, table);
    const float miss = x[i] - scale * static_cast<float>(table[code]);
    error += w[i] * miss * miss;
    if (codes != nullptr) codes[i] = code;
  }
  return error;
}

}  // namespace wok
