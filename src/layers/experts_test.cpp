#include "layers/experts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/isa.h"

namespace wok {
namespace {

class Experts : public testing::Test {
 protected:
  ComputePool pool_{2};
  Compute compute_{&reference_kernels(), &pool_, nullptr, 0};
};

TEST_F(Experts, TheLikeliestAreChosenAndTheFirstAmongEquals) {
  ExpertRouting routing;
  routing.reserve({.experts = 4, .used = 2, .normalize = false}, 3);
  const std::vector<float> logits = {0, 2, 1, -1,  //
                                     3, 3, 3, 3,   //
                                     0, 0, 0, 9};
  routing.route(compute_, logits.data(), 3, 3);
  // One column a token, so that the sums are the weights.
  std::vector<float> out(3), ones(6, 1.0f);
  routing.combine(compute_, ones.data(), 1, out.data());
  const double total = std::exp(0) + std::exp(2) + std::exp(1) + std::exp(-1);
  EXPECT_NEAR(out[0], (std::exp(2) + std::exp(1)) / total, 1e-6);
  EXPECT_NEAR(out[1], 0.5, 1e-6);
  // Groups are by expert, and each says whose rows it holds.
  std::vector<std::vector<int32_t>> tokens(4);
  for (const ExpertRows& g : routing.groups()) {
    for (int32_t r = g.row_begin; r < g.row_end; ++r) {
      tokens[g.expert].push_back(routing.token_of(r));
    }
  }
  EXPECT_EQ(tokens[0], (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(tokens[1], (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(tokens[2], (std::vector<int32_t>{0}));
  EXPECT_EQ(tokens[3], (std::vector<int32_t>{2}));
}

TEST_F(Experts, NormalizedWeightsAddUpToOne) {
  ExpertRouting routing;
  routing.reserve({.experts = 8, .used = 3, .normalize = true}, 2);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> logits(16);
  for (float& x : logits) x = normal(random);
  routing.route(compute_, logits.data(), 2, 2);
  std::vector<float> out(2, 10.0f), ones(6, 1.0f);
  routing.combine(compute_, ones.data(), 1, out.data());
  EXPECT_NEAR(out[0], 11, 1e-5);  // added to what was there
  EXPECT_NEAR(out[1], 11, 1e-5);
}

TEST_F(Experts, DecodedTokensComeBeforePrompts) {
  ExpertRouting routing;
  routing.reserve({.experts = 2, .used = 1}, 4);
  const std::vector<float> logits = {0, 1, 1, 0, 0, 1, 1, 0};
  routing.route(compute_, logits.data(), 4, 2);
  ASSERT_EQ(routing.groups().size(), 4u);
  for (int32_t r = 0; r < 4; ++r) EXPECT_EQ(routing.token_of(r) < 2, r < 2) << r;
}

TEST_F(Experts, WhatIsNoNumberStaysWithItsToken) {
  ExpertRouting routing;
  routing.reserve({.experts = 3, .used = 2}, 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits = {nan, nan, nan, 0, 1, 2};
  routing.route(compute_, logits.data(), 2, 2);
  std::vector<float> out(2), ones(4, 1.0f);
  routing.combine(compute_, ones.data(), 1, out.data());
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_FALSE(std::isnan(out[1]));
}

}  // namespace
}  // namespace wok
