#include "layers/rope.h"

#include <algorithm>
#include <cmath>

namespace wok {

std::vector<float> rope_frequencies(int32_t dims, double base, double scale) {
  std::vector<float> out(dims / 2);
  for (int32_t i = 0; i < dims / 2; ++i) {
    out[i] = static_cast<float>(scale * std::pow(base, -2.0 * i / dims));
  }
  return out;
}

std::vector<float> yarn_frequencies(int32_t dims, double base, double factor,
                                    int32_t original_tokens, bool whole_pairs) {
  constexpr double kFastTurns = 32, kSlowTurns = 1;
  // The pair that turns so often within the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(original_tokens / (turns * 2 * M_PI)) / (2 * std::log(base));
  };
  const double first = pair_of(kFastTurns), last = pair_of(kSlowTurns);
  const double low = std::max(0.0, whole_pairs ? std::floor(first) : first);
  const double high = std::min(dims - 1.0, whole_pairs ? std::ceil(last) : last);
  std::vector<float> out = rope_frequencies(dims, base, 1);
  for (int32_t i = 0; i < dims / 2; ++i) {
    const double slow = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
    out[i] = static_cast<float>(out[i] * (slow / factor + (1 - slow)));
  }
  return out;
}

float yarn_magnitude(double factor) {
  return static_cast<float>(factor > 1 ? 1 + 0.1 * std::log(factor) : 1.0);
}

void RopeTable::reserve(std::vector<float> frequencies, int32_t max_tokens, float magnitude) {
  magnitude_ = magnitude;
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
      cos_[int64_t{t} * pairs_ + i] = static_cast<float>(std::cos(angle)) * magnitude_;
      sin_[int64_t{t} * pairs_ + i] = static_cast<float>(std::sin(angle)) * magnitude_;
    }
  });
}

}  // namespace wok
