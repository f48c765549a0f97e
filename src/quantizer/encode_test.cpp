#include "quantizer/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "quantizer/fit.h"

namespace wok {
namespace {

constexpr int64_t kWeights = 1024;

std::vector<float> gaussian(uint32_t seed, float spread = 0.02f, float centre = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(centre, spread);
  std::vector<float> x(kWeights);
  for (float& v : x) v = normal(random);
  return x;
}

std::vector<float> there_and_back(const WeightFormat& format, const std::vector<float>& x,
                                  const float* importance = nullptr) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(format.row_bytes(n)), 0xa5);
  find_encoder(format)(x.data(), importance, n, bytes.data());
  std::vector<float> y(x.size());
  format.dequantize(bytes.data(), y.data(), n);
  return y;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double missed = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    missed += (x[i] - y[i]) * (x[i] - y[i]);
    squares += x[i] * x[i];
  }
  return std::sqrt(missed / squares);
}

// What each format loses of normally distributed weights; a tenth more than was measured.
TEST(Encoders, LoseWhatTheirBitsAllow) {
  const std::pair<const WeightFormat*, double> limits[] = {
      {&kWeightFormat_f32, 1e-9},     {&kWeightFormat_f16, 0.0004}, {&kWeightFormat_bf16, 0.0024},
      {&kWeightFormat_q8_0, 0.006},   {&kWeightFormat_q6_k, 0.020}, {&kWeightFormat_q5_k, 0.036},
      {&kWeightFormat_q5_1, 0.039},   {&kWeightFormat_q5_0, 0.043}, {&kWeightFormat_q4_k, 0.076},
      {&kWeightFormat_q4_1, 0.080},   {&kWeightFormat_q4_0, 0.089}, {&kWeightFormat_iq4_nl, 0.083},
      {&kWeightFormat_iq4_xs, 0.085}, {&kWeightFormat_q3_k, 0.165}, {&kWeightFormat_q2_k, 0.31}};
  size_t encoders = 0;
  for (const WeightFormat* format : weight_formats()) {
    if (find_encoder(*format) != nullptr) ++encoders;
  }
  EXPECT_EQ(encoders, std::size(limits));
  for (const auto& [format, limit] : limits) {
    for (const uint32_t seed : {1u, 2u, 3u}) {
      const std::vector<float> x = gaussian(seed);
      EXPECT_LT(relative_error(x, there_and_back(*format, x)), limit) << format->name;
    }
  }
}

TEST(Encoders, OddRowsStayFiniteAndClose) {
  std::vector<std::vector<float>> rows = {std::vector<float>(kWeights, 0.0f),
                                          std::vector<float>(kWeights, 0.25f),
                                          std::vector<float>(kWeights, -0.25f),
                                          gaussian(4, 1e-9f),
                                          gaussian(5, 30.0f),
                                          gaussian(6, 0.01f, 0.5f),
                                          gaussian(7, 0.01f, -0.5f)};
  std::vector<float> spike(kWeights, 0.0f);
  spike[3] = 1;
  spike[700] = -2;
  rows.push_back(spike);
  for (const WeightFormat* format : weight_formats()) {
    if (find_encoder(*format) == nullptr) continue;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> y = there_and_back(*format, rows[r]);
      float largest = 0;
      for (const float v : rows[r]) largest = std::max(largest, std::fabs(v));
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(std::isfinite(y[i])) << format->name << " row " << r;
        // A block's step at most; what is below 16-bit scales may vanish.
        const float step = largest / (format->bits_per_weight() > 4 ? 7.0f : 1.7f) + 1e-7f;
        ASSERT_NEAR(y[i], rows[r][i], step) << format->name << " row " << r << " at " << i;
      }
    }
  }
}

// What is on a format's grid already comes back (nearly: scales are found again, not copied).
TEST(Encoders, FindAGridAgain) {
  for (const WeightFormat* format :
       {&kWeightFormat_q4_0, &kWeightFormat_q4_1, &kWeightFormat_q5_0, &kWeightFormat_q8_0,
        &kWeightFormat_q4_k, &kWeightFormat_q6_k, &kWeightFormat_iq4_nl}) {
    const std::vector<float> once = there_and_back(*format, gaussian(9));
    EXPECT_LT(relative_error(once, there_and_back(*format, once)), 0.01) << format->name;
  }
}

TEST(Encoders, BetterThanRoundingToTheLargest) {
  const std::vector<float> x = gaussian(10);
  std::vector<float> plain(x.size());
  for (size_t b = 0; b < x.size(); b += 32) {
    float largest = 0;
    for (int i = 0; i < 32; ++i) {
      if (std::fabs(x[b + i]) > std::fabs(largest)) largest = x[b + i];
    }
    const float d = largest / -8;
    for (int i = 0; i < 32; ++i) {
      plain[b + i] = d * std::clamp(std::nearbyintf(x[b + i] / d), -8.0f, 7.0f);
    }
  }
  EXPECT_LT(relative_error(x, there_and_back(kWeightFormat_q4_0, x)),
            0.97 * relative_error(x, plain));
}

// Columns that count more are kept better.
TEST(Encoders, ImportanceMovesTheError) {
  const std::vector<float> x = gaussian(11);
  std::vector<float> importance(x.size(), 0.01f);
  for (size_t i = 0; i < x.size(); i += 8) importance[i] = 1;
  const auto error_of = [&](const std::vector<float>& y) {
    double missed = 0;
    for (size_t i = 0; i < x.size(); i += 8) missed += (x[i] - y[i]) * (x[i] - y[i]);
    return missed;
  };
  for (const WeightFormat* format : {&kWeightFormat_q4_0, &kWeightFormat_q4_1, &kWeightFormat_q4_k,
                                     &kWeightFormat_q3_k, &kWeightFormat_q2_k}) {
    EXPECT_LT(error_of(there_and_back(*format, x, importance.data())),
              0.9 * error_of(there_and_back(*format, x)))
        << format->name;
  }
}

}  // namespace
}  // namespace wok
