// GPTQ and AWQ on inputs whose columns are alike, as a model's are: what each has to gain over
// rounding to nearest, and what happens where the sums say little.
#include "quantizer/gptq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/isa.h"
#include "quantizer/awq.h"

namespace wok {
namespace {

using testing::HasSubstr;

constexpr int32_t kRows = 48, kCols = 96, kTokens = 600;

struct Site {
  ComputePool pool{2};
  const KernelTable& kernels = *choose_isa("").value().kernels;
  FloatProduct product{kernels, pool};
  std::vector<float> w, x;
  Gram gram{kCols};

  // Inputs that are sums of a few shared ones, some columns much larger than others.
  explicit Site(uint32_t seed, bool repeated = false) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    w.resize(kRows * kCols);
    for (float& v : w) v = 0.1f * normal(random);
    x.resize(kTokens * kCols);
    constexpr int kShared = 12;
    std::vector<float> mix(kShared * kCols);
    for (float& v : mix) v = normal(random);
    for (int t = 0; t < kTokens; ++t) {
      float shared[kShared];
      for (float& v : shared) v = normal(random);
      for (int c = 0; c < kCols; ++c) {
        float value = repeated ? 0 : 0.3f * normal(random);
        for (int s = 0; s < kShared; ++s) value += shared[s] * mix[s * kCols + c];
        x[t * kCols + c] = c % 17 == 3 ? 12 * value : value;
      }
    }
  }
  void add() { gram.add(x.data(), kTokens, product, pool); }
  double error(const GroupedMatrix& m) {
    return output_error(lost(w.data(), m, pool), kRows, gram, product);
  }
};

// Straight from the definition.
double plain_error(const Site& site, const GroupedMatrix& m) {
  double sum = 0;
  for (int t = 0; t < kTokens; ++t) {
    for (int r = 0; r < kRows; ++r) {
      double y = 0;
      for (int c = 0; c < kCols; ++c) {
        y += double{site.w[r * kCols + c] - m.at(r, c)} * site.x[t * kCols + c];
      }
      sum += y * y;
    }
  }
  return sum;
}

TEST(Gram, SeesTheErrorOfTheOutputs) {
  Site site(1);
  site.add();
  const GroupedMatrix m =
      round_to_nearest(site.w.data(), kRows, kCols, nullptr, {4, 32, true}, site.pool);
  const double plain = plain_error(site, m);
  EXPECT_NEAR(site.error(m), plain, 1e-3 * plain);
  double square = 0;
  for (int t = 0; t < kTokens; ++t) square += double{site.x[t * kCols + 3]} * site.x[t * kCols + 3];
  EXPECT_NEAR(site.gram.importance()[3], square / kTokens, 1e-3 * square / kTokens);
  Gram squares(kCols, /*squares_only=*/true);
  squares.add(site.x.data(), kTokens, site.product, site.pool);
  for (int c = 0; c < kCols; ++c) {
    EXPECT_NEAR(squares.importance()[c], site.gram.importance()[c],
                1e-4f * site.gram.importance()[c]);
  }
}

class GptqAt : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(GptqAt, LosesLessThanRoundingToNearest) {
  const auto [bits, group, symmetric] = GetParam();
  const GroupedOptions options{bits, group, symmetric};
  Site site(2);
  site.add();
  const double rounded =
      site.error(round_to_nearest(site.w.data(), kRows, kCols, nullptr, options, site.pool));
  const GptqFactor factor = make_gptq_factor(site.gram, 0.01f, 1);
  ASSERT_EQ(factor.problem, "");
  for (const bool act_order : {false, true}) {
    const GroupedMatrix m = gptq(site.w.data(), kRows, factor, options, act_order, site.pool);
    EXPECT_LT(site.error(m), 0.5 * rounded) << "act-order " << act_order;
    EXPECT_EQ(m.group_of.empty(), !act_order);
    for (const uint8_t code : m.codes) ASSERT_LT(code, 1 << bits);
    if (!symmetric) continue;
    for (const uint8_t zero : m.zeros) ASSERT_EQ(zero, 1 << (bits - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Options, GptqAt,
                         testing::Combine(testing::Values(2, 3, 4, 8), testing::Values(32, 64, 96),
                                          testing::Bool()));

// With no correlation there is nothing to make up for: codes are those of rounding.
TEST(Gptq, IsRoundingWhereInputsAreIndependent) {
  Site site(3);
  std::vector<float> x(kCols * kCols, 0.0f);
  for (int c = 0; c < kCols; ++c) x[c * kCols + c] = 2;
  site.gram.add(x.data(), kCols, site.product, site.pool);
  const GptqFactor factor = make_gptq_factor(site.gram, 0.01f, 1);
  const std::vector<float> equal(kCols, 1.0f);
  const GroupedOptions options{4, 32, true};
  const GroupedMatrix m = gptq(site.w.data(), kRows, factor, options, false, site.pool);
  const GroupedMatrix r =
      round_to_nearest(site.w.data(), kRows, kCols, equal.data(), options, site.pool);
  EXPECT_EQ(m.codes, r.codes);
  EXPECT_EQ(m.scales, r.scales);
}

// Reports of AutoGPTQ (196, 572, 708): sums that are not positive definite, dead columns.
TEST(Gptq, SurvivesSumsThatAreNotPositiveDefinite) {
  Site site(4, /*repeated=*/true);  // rank 12 of 96
  for (int t = 0; t < kTokens; ++t) site.x[t * kCols + 40] = 0;
  site.add();
  const GptqFactor factor = make_gptq_factor(site.gram, 0.0f, 1);
  ASSERT_EQ(factor.problem, "");
  EXPECT_GT(factor.damping, 0);
  EXPECT_EQ(factor.dead[40], 1);
  const GroupedOptions options{4, 32, true};
  const GroupedMatrix m = gptq(site.w.data(), kRows, factor, options, false, site.pool);
  for (int r = 0; r < kRows; ++r) EXPECT_EQ(m.at(r, 40), 0);
  const double rounded =
      site.error(round_to_nearest(site.w.data(), kRows, kCols, nullptr, options, site.pool));
  EXPECT_LT(site.error(m), 0.5 * rounded);
}

TEST(Gptq, SaysWhyItCannot) {
  Gram none(kCols);
  EXPECT_THAT(make_gptq_factor(none, 0.01f, 1).problem, HasSubstr("0 tokens"));
  Site site(5);
  site.x[7] = std::nanf("");
  site.add();
  EXPECT_THAT(make_gptq_factor(site.gram, 0.01f, 1).problem, HasSubstr("not finite"));
}

TEST(Awq, ScalesSaveTheColumnsThatMatter) {
  Site site(6);
  site.add();
  const GroupedOptions options{4, 32, false};
  const AwqMatrix matrix{&site.w, kRows};
  const AwqScales found =
      find_awq_scales({&matrix, 1}, site.gram, options, site.product, site.pool);
  EXPECT_LT(found.best, 0.6 * found.plain);
  // Large inputs, large factors.
  EXPECT_GT(found.by_column[3], 2 * found.by_column[4]);

  const GroupedMatrix plain =
      round_to_nearest(site.w.data(), kRows, kCols, nullptr, options, site.pool);
  EXPECT_NEAR(found.plain, site.error(plain), 1e-4 * found.plain);
}

TEST(Awq, ClippingNeverLosesWithinAGroup) {
  Site site(7);
  for (int r = 0; r < kRows; ++r) site.w[r * kCols + 20] *= 6;  // a weight that stretches its grid
  site.add();
  const GroupedOptions options{4, kCols, false};
  const GroupedMatrix clipped = awq_round(site.w, kRows, site.gram, {}, options, site.pool);
  const GroupedMatrix plain =
      round_to_nearest(site.w.data(), kRows, kCols, nullptr, options, site.pool);
  // One group is the whole row: what the search looks at is the error itself.
  EXPECT_LT(site.error(clipped), site.error(plain));
}

}  // namespace
}  // namespace wok
