#include "layers/rope.h"

#include <cmath>

namespace wok {

std::vector<float> rope_frequencies(int32_t dims, double base, double scale) {
  std::vector<float> out(dims / 2);
  for (int32_t i = 0; i < dims / 2; ++i) {
    out[i] = static_cast<float>(scale * std::pow(base, -2.0 * i / dims));
  }
  return out;
}

void RopeTable::reserve(std::vector<float> frequencies, int32_t max_tokens) {
  pairs_ = static_cast<int32_t>(frequencies.size());
  frequencies_ = std::move(frequencies);
  cos_.resize(static_cast<size_t>(pairs_) * max_tokens);
  sin_.resize(cos_.size());
}

void RopeTable::fill(const Compute& compute, std::span<const int32_t> positions) {
  compute.for_rows(static_cast<int32_t>(positions.size()), [&](int32_t t) {
    for (int32_t i = 0; i < pairs_; ++i) {
      // In double: a float angle at position 100,000 is off by a hundredth of a radian.
      const double angle = static_cast<double>(positions[t]) * frequencies_[i];
      cos_[int64_t{t} * pairs_ + i] = static_cast<float>(std::cos(angle));
      sin_[int64_t{t} * pairs_ + i] = static_cast<float>(std::sin(angle));
    }
  });
}

}  // namespace wok
