#include "layers/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace wok {
namespace {

// The paper's rule at its ends and in between (arXiv 2309.00071, section 3.2).
TEST(Yarn, KeepsFastPairsAndSlowsSlowOnes) {
  constexpr int32_t kDims = 128, kOriginal = 4096;
  constexpr double kBase = 10000, kFactor = 8;
  const std::vector<float> plain = rope_frequencies(kDims, kBase, 1);
  const std::vector<float> yarn = yarn_frequencies(kDims, kBase, kFactor, kOriginal);
  int kept = 0, slowed = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double turns = kOriginal * plain[i] / (2 * M_PI);
    // A pair's neighbours are rounded to whole indices: well inside the ranges only.
    if (turns > 40) {
      EXPECT_EQ(yarn[i], plain[i]) << i;
      ++kept;
    } else if (turns < 0.8) {
      EXPECT_NEAR(yarn[i], plain[i] / kFactor, 1e-7 * plain[i]) << i;
      ++slowed;
    } else {
      EXPECT_LE(yarn[i], plain[i]) << i;
      EXPECT_GE(yarn[i], plain[i] / kFactor * 0.999f) << i;
    }
    EXPECT_LT(yarn[i], i > 0 ? yarn[i - 1] : 2.0f) << i;
  }
  EXPECT_GT(kept, 10);
  EXPECT_GT(slowed, 10);
  EXPECT_FLOAT_EQ(yarn_magnitude(kFactor), 1.2079442f);
  EXPECT_EQ(yarn_magnitude(1), 1);
}

TEST(Yarn, AFactorOfOneChangesNothing) {
  EXPECT_EQ(yarn_frequencies(64, 1e6, 1, 2048), rope_frequencies(64, 1e6, 1));
}

TEST(RopeTable, MultipliesByItsMagnitude) {
  ComputePool pool(1);
  const Compute compute{&reference_kernels(), &pool, nullptr, 0};
  RopeTable table;
  table.reserve({0.5f, 0.25f}, 2, 1.5f);
  const int32_t positions[] = {0, 3};
  table.fill(compute, positions);
  EXPECT_FLOAT_EQ(table.cos(0)[0], 1.5f);
  EXPECT_FLOAT_EQ(table.sin(1)[0], 1.5f * std::sin(1.5f));
  EXPECT_FLOAT_EQ(table.cos(1)[1], 1.5f * std::cos(0.75f));
}

}  // namespace
}  // namespace wok
