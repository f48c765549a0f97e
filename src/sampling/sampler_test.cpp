#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "kernels/isa.h"

namespace wok {
namespace {

class SamplerTest : public testing::Test {
 protected:
  static constexpr int32_t kVocab = 50;

  // Samples `n` positions of the same distribution and counts what comes out.
  std::map<int32_t, int> histogram(const SamplingParams& params, int n = 4000) {
    Sampler sampler(*kernels_, kVocab);
    std::map<int32_t, int> counts;
    std::vector<int32_t> tokens(1, 0);
    for (int i = 0; i < n; ++i) {
      std::vector<float> logits = logits_;
      tokens.resize(static_cast<size_t>(i) + 1);
      ++counts[sampler.sample({&params, tokens, static_cast<int32_t>(tokens.size()), {}, logits})
                   .token];
    }
    return counts;
  }
  int32_t one(const SamplingParams& params, std::vector<int32_t> tokens, int32_t prompt,
              std::vector<int32_t> stops = {}) {
    Sampler sampler(*kernels_, kVocab);
    std::vector<float> logits = logits_;
    return sampler.sample({&params, tokens, prompt, stops, logits}).token;
  }

  const KernelTable* kernels_ = choose_isa("")->kernels;
  // Probabilities 0.5, 0.25, 0.125 ... of tokens 0, 1, 2 ...
  std::vector<float> logits_ = [] {
    std::vector<float> l(kVocab);
    for (int32_t i = 0; i < kVocab; ++i) l[i] = -static_cast<float>(i) * std::log(2.0f);
    return l;
  }();
};

TEST_F(SamplerTest, TemperatureZeroIsGreedy) {
  EXPECT_EQ(histogram({.temperature = 0}, 50).size(), 1u);
  EXPECT_EQ(one({.temperature = 0}, {1}, 1), 0);
}

TEST_F(SamplerTest, DrawsFromTheDistribution) {
  auto counts = histogram({.seed = 3});
  EXPECT_NEAR(counts[0] / 4000.0, 0.5, 0.03);
  EXPECT_NEAR(counts[1] / 4000.0, 0.25, 0.03);
  EXPECT_NEAR(counts[2] / 4000.0, 0.125, 0.02);
  counts = histogram({.temperature = 0.5f, .seed = 3});  // squares: 0.75, 0.1875 ...
  EXPECT_NEAR(counts[0] / 4000.0, 0.75, 0.03);
}

TEST_F(SamplerTest, TruncationsKeepWhatTheyShould) {
  EXPECT_EQ(histogram({.top_k = 3}).size(), 3u);
  EXPECT_EQ(histogram({.top_k = 1}).size(), 1u);
  EXPECT_EQ(histogram({.top_p = 0.7f}).size(), 2u);  // 0.5 + 0.25 reach it
  EXPECT_EQ(histogram({.top_p = 0.5f}).size(), 1u);
  EXPECT_EQ(histogram({.min_p = 0.2f}).size(), 3u);  // 1/2, 1/4 of the top and the top
  EXPECT_EQ(histogram({.top_k = 4, .top_p = 0.99f, .min_p = 0.3f}).size(), 2u);
  // Entropy is 2 bits: the token of 2 bits' surprise (1) comes first.
  const auto typical = histogram({.typical_p = 0.2f});
  EXPECT_EQ(typical.size(), 1u);
  EXPECT_EQ(typical.begin()->first, 1);
}

TEST_F(SamplerTest, ALowTopPOnAFlatDistributionStillSeesEveryToken) {
  logits_.assign(kVocab, 0.0f);
  EXPECT_EQ(histogram({.top_p = 0.999f}).size(), static_cast<size_t>(kVocab));
}

TEST_F(SamplerTest, SeedAndPositionDecide) {
  const SamplingParams a{.seed = 1}, b{.seed = 2};
  EXPECT_EQ(histogram(a, 100), histogram(a, 100));
  EXPECT_NE(histogram(a, 100), histogram(b, 100));
}

TEST_F(SamplerTest, PenaltiesLowerWhatWasSaid) {
  // Token 0 leads token 1 by log 2 = 0.69.
  EXPECT_EQ(one({.temperature = 0, .presence_penalty = 1}, {5, 0}, 1), 1);
  EXPECT_EQ(one({.temperature = 0, .presence_penalty = 1}, {0, 5}, 1), 0);  // said in the prompt
  EXPECT_EQ(one({.temperature = 0, .frequency_penalty = 0.3f}, {5, 0}, 1), 0);
  EXPECT_EQ(one({.temperature = 0, .frequency_penalty = 0.3f}, {5, 0, 0, 0}, 1), 1);
  logits_[0] = 1.0f, logits_[1] = 0.9f;
  EXPECT_EQ(one({.temperature = 0, .repetition_penalty = 1.5f}, {0}, 1), 1);  // prompt counts too
  logits_.assign(kVocab, -1.0f);
  logits_[7] = -0.9f;
  EXPECT_NE(one({.temperature = 0, .repetition_penalty = 1.5f}, {7}, 1), 7);  // negative ones too
}

TEST_F(SamplerTest, BiasMovesAndBansTokens) {
  SamplingParams p{.temperature = 0};
  p.logit_bias = {{9, 100.0f}};
  EXPECT_EQ(one(p, {1}, 1), 9);
  p.logit_bias = {{0, -100.0f}};
  EXPECT_EQ(one(p, {1}, 1), 1);
  p.logit_bias = {{-3, 5.0f}, {kVocab, 5.0f}};  // outside: ignored, not a crash
  EXPECT_EQ(one(p, {1}, 1), 0);
}

TEST_F(SamplerTest, StopTokensCannotBeChosenBeforeMinTokens) {
  const SamplingParams p{.temperature = 0, .min_tokens = 2};
  EXPECT_EQ(one(p, {5, 6}, 1, {0}), 1);
  EXPECT_EQ(one(p, {5, 6, 7}, 1, {0}), 0);
}

TEST_F(SamplerTest, LogprobsAreTheModelsOwnWhateverTheSamplingDid) {
  Sampler sampler(*kernels_, kVocab);
  SamplingParams p{.temperature = 0, .top_logprobs = 3};
  p.logit_bias = {{4, 100.0f}};
  std::vector<float> logits = logits_;
  const SampledToken out = sampler.sample({&p, {}, 0, {}, logits});
  EXPECT_EQ(out.token, 4);
  EXPECT_NEAR(out.logprob, std::log(1.0 / 32), 1e-4);
  ASSERT_EQ(out.top_count, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(out.top[i].token, i);
    EXPECT_NEAR(out.top[i].logprob, std::log(std::pow(0.5, i + 1)), 1e-4);
  }
}

TEST_F(SamplerTest, UniformIsUniform) {
  double sum = 0, low = 1, high = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double u = uniform(42, i);
    sum += u, low = std::min(low, u), high = std::max(high, u);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_GE(low, 0.0);
  EXPECT_LT(high, 1.0);
}

}  // namespace
}  // namespace wok
