// Scales and codes of one block of weights, by a search: the best of some scales around the obvious
// one, each improved by the least squares of its codes. `w` says how much an error of each weight
// counts (all positive).
#pragma once

#include <cstdint>

namespace wok {

constexpr int kMostFitted = 32;  // weights of a block

// x ≈ scale * code with codes in [lo, hi], |lo| = hi + 1 or hi. Returns the scale, which may be
// negative; 0 for a block of zeros.
float fit_symmetric(const float* x, const float* w, int n, int lo, int hi);

// x ≈ scale * code - min with codes in [0, hi], scale and min at least 0.
struct Affine {
  float scale = 0, min = 0;
};
Affine fit_affine(const float* x, const float* w, int n, int hi);

// x ≈ scale * table[code], 16 values in ascending order. Returns the scale.
float fit_table(const float* x, const float* w, int n, const int8_t* table);

// Codes for given factors, and the weighted squared error they leave. `codes` may be null.
float round_symmetric(const float* x, const float* w, int n, float scale, int lo, int hi,
                      int8_t* codes);
float round_affine(const float* x, const float* w, int n, Affine f, int hi, int8_t* codes);
float round_table(const float* x, const float* w, int n, float scale, const int8_t* table,
                  int8_t* codes);

}  // namespace wok
