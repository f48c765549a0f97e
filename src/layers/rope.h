// Rotary position embedding (arXiv 2104.09864): the angles of a step's tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/compute.h"

namespace wok {

// cos and sin of position * frequency[i], [tokens, dims / 2]; sized once, filled every step.
class RopeTable {
 public:
  // frequencies: one a rotated pair, base^(-2i/dims) scaled as the model says.
  // magnitude: what rotated values are multiplied by.
  void reserve(std::vector<float> frequencies, int32_t max_tokens, float magnitude = 1);
  void fill(const Compute& compute, std::span<const int32_t> positions);

  int32_t dims() const { return 2 * pairs_; }
  const float* cos(int32_t token) const { return cos_.data() + int64_t{token} * pairs_; }
  const float* sin(int32_t token) const { return sin_.data() + int64_t{token} * pairs_; }

 private:
  int32_t pairs_ = 0;
  float magnitude_ = 1;
  std::vector<float> frequencies_, cos_, sin_;
};

std::vector<float> rope_frequencies(int32_t dims, double base, double scale);

// YaRN (arXiv 2309.00071): a context stretched `factor` times over the `original_tokens` a model
// was trained with. Pairs that turn 32 times and more in those keep their frequency, those that
// turn less than once have it divided by the factor, the ones between have a part of both.
// whole_pairs: where they begin and end is rounded outwards to whole pairs.
std::vector<float> yarn_frequencies(int32_t dims, double base, double factor,
                                    int32_t original_tokens, bool whole_pairs = true);
// What queries and keys are multiplied by beside it: 1 + ln(factor) / 10.
float yarn_magnitude(double factor);

}  // namespace wok
