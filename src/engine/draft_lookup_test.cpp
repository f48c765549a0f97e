// The drafter alone: what it proposes, and how sure it says it is.
#include "engine/draft_lookup.h"

#include <gtest/gtest.h>

#include <random>

namespace wok {
namespace {

class DraftLookupTest : public testing::Test {
 protected:
  void start(std::vector<int32_t> tokens, int32_t max_tokens = 4096) {
    tokens_ = std::move(tokens);
    lookup_.start(tokens_, max_tokens);
  }
  void add(std::initializer_list<int32_t> tokens) {
    tokens_.insert(tokens_.end(), tokens);
    lookup_.follow(tokens_);
  }
  std::vector<int32_t> propose(size_t count = 3) {
    std::vector<int32_t> out(count);
    out.resize(static_cast<size_t>(lookup_.propose(tokens_, out)));
    return out;
  }
  std::vector<int32_t> tokens_;
  DraftLookup lookup_;
};

using Tokens = std::vector<int32_t>;

TEST_F(DraftLookupTest, ProposesWhatFollowedBefore) {
  start({1, 2, 3, 4, 5, 6, 7, 9, 2, 3});
  EXPECT_EQ(propose(), (Tokens{4, 5, 6}));
  add({4});
  EXPECT_EQ(propose(), (Tokens{5, 6, 7}));
}

TEST_F(DraftLookupTest, OneTokenIsNoMatchAndNothingIsProposedWithoutOne) {
  start({1, 2, 3, 9, 2});
  EXPECT_FALSE(lookup_.has_proposal());
  EXPECT_EQ(propose(), Tokens{});
  start({5});
  EXPECT_EQ(propose(), Tokens{});
}

TEST_F(DraftLookupTest, TheLongestMatchWinsThenTheLatest) {
  // 2 3 was followed by 7 last, 1 2 3 by 4.
  start({1, 2, 3, 4, 8, 2, 3, 7, 9, 1, 2, 3});
  EXPECT_EQ(propose(1), Tokens{4});
  start({1, 2, 3, 4, 9, 1, 2, 3, 5, 9, 9, 1, 2, 3});
  EXPECT_EQ(propose(1), Tokens{5});
}

TEST_F(DraftLookupTest, ALoopGoesOnPastItsOwnEnd) {
  start({1, 2, 3, 1, 2, 3, 1});
  EXPECT_EQ(propose(7), (Tokens{2, 3, 1, 2, 3, 1, 2}));
  start({4, 4, 4});
  EXPECT_EQ(propose(4), (Tokens{4, 4, 4, 4}));
}

TEST_F(DraftLookupTest, AWrongGuessIsLookedUpAnewOrGoesOnBehindIt) {
  Tokens text(30);
  for (int32_t i = 0; i < 30; ++i) text[i] = 100 + i;
  text.insert(text.end(), {7, 8, 50, 51, 52, 9, 100, 101});
  start(text);
  EXPECT_EQ(propose(2), (Tokens{102, 103}));
  add({7, 8});  // known from elsewhere
  EXPECT_EQ(propose(2), (Tokens{50, 51}));
  add({99});  // new, and the match was short
  EXPECT_EQ(propose(2), Tokens{});
  add({100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110});
  add({42});  // one word of a long passage is replaced
  EXPECT_EQ(propose(2), (Tokens{112, 113}));
  add({112, 113});
  EXPECT_EQ(propose(2), (Tokens{114, 115}));
}

TEST_F(DraftLookupTest, ChancesFollowWhatHappens) {
  std::mt19937 random(1);
  Tokens noise(400);
  for (int32_t& t : noise) t = static_cast<int32_t>(random() % 8);
  start(noise);
  // Noise over 8 tokens: two-token matches everywhere, right one time in 8.
  for (int i = 0; i < 600; ++i) add({static_cast<int32_t>(random() % 8)});
  double sum = 0;
  for (int i = 0; i < 100; ++i) {
    add({static_cast<int32_t>(random() % 8)});
    sum += lookup_.has_proposal() ? lookup_.chance(0) : 0;
  }
  EXPECT_LT(sum / 100, 0.3);
  // Then what stood there is repeated: the chance grows without a draft having been computed.
  const Tokens said = tokens_;
  for (int i = 0; i < 100; ++i) add({said[i + 50]});
  EXPECT_TRUE(lookup_.has_proposal());
  EXPECT_GT(lookup_.chance(0), 0.9f);
  EXPECT_EQ(propose(3), Tokens(said.begin() + 150, said.begin() + 153));
}

// True where `next` stands behind what the sequence's last two tokens are, or behind its last ten
// tokens but for one.
bool stands_to_reason(const Tokens& tokens, int32_t next) {
  const size_t n = tokens.size();
  for (size_t p = 2; p < n; ++p) {
    if (tokens[p] != next) continue;
    const auto differences = [&](size_t count) {
      size_t sum = 0;
      for (size_t i = 1; i <= count; ++i) sum += tokens[p - i] != tokens[n - i];
      return sum;
    };
    if (differences(2) == 0 || (p >= 10 && differences(10) <= 1)) return true;
  }
  return false;
}

// The small table is full of n-grams that share a slot. Following token by token or at once is the
// same.
TEST_F(DraftLookupTest, RandomSequences) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto alphabet = static_cast<int32_t>(2 + random() % 20);
    Tokens all;
    while (all.size() < 500) {
      if (all.size() > 40 && random() % 5 == 0) {  // quotes itself
        const size_t from = random() % (all.size() - 30);
        for (size_t i = 0; i < 25; ++i) all.push_back(all[from + i]);
      }
      all.push_back(static_cast<int32_t>(random()) % alphabet);
    }
    start({all[0]}, static_cast<int32_t>(all.size()));
    DraftLookup bulk;
    bulk.start(std::span(all).first(1), static_cast<int32_t>(all.size()));
    int proposals = 0;
    for (size_t i = 1; i < all.size(); ++i) {
      add({all[i]});
      const Tokens next = propose(1);
      if (next.empty()) continue;
      ++proposals;
      EXPECT_TRUE(stands_to_reason(tokens_, next[0])) << "token " << i;
      EXPECT_GE(lookup_.chance(0), 0.0f);
      EXPECT_LE(lookup_.chance(0), 1.0f);
    }
    EXPECT_GT(proposals, 50);
    bulk.follow(all);
    Tokens one(8), other(8);
    EXPECT_EQ(lookup_.propose(all, one), bulk.propose(all, other));
    EXPECT_EQ(one, other);
    EXPECT_EQ(lookup_.chance(0), bulk.chance(0));
  }
}

}  // namespace
}  // namespace wok
