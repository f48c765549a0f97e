// Whose drafts a step verifies, by what rows cost and by how likely they are right.
#include "engine/draft_budget.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/draft_lookup.h"

namespace wok {
namespace {

// A sequence that has repeated itself for so long that its drafts are nearly certain.
DraftLookup sure() {
  std::vector<int32_t> loop(100);
  for (int32_t i = 0; i < 100; ++i) loop[i] = i % 10;
  DraftLookup lookup;
  lookup.start(std::span(loop).first(20), 200);
  lookup.follow(loop);
  EXPECT_GT(lookup.chance(0), 0.9f);
  return lookup;
}

DraftShare share_of(const DraftLookup& lookup, int32_t most) {
  DraftShare share{.most = most};
  for (int32_t i = 0; i < most; ++i) share.chance[i] = lookup.chance(i);
  return share;
}

// One whose matches of two tokens were mostly wrong.
DraftLookup unsure() {
  std::vector<int32_t> tokens;
  std::mt19937 random(2);
  for (int i = 0; i < 900; ++i) tokens.push_back(static_cast<int32_t>(random() % 25));
  DraftLookup lookup;
  lookup.start(std::span(tokens).first(20), 2000);
  lookup.follow(tokens);
  while (!lookup.has_proposal()) {
    tokens.push_back(static_cast<int32_t>(random() % 25));
    lookup.follow(tokens);
  }
  EXPECT_LT(lookup.chance(0), 0.15f);
  return lookup;
}

void learn(DraftBudget& budget, double first_ms, double row_ms) {
  for (int i = 0; i < 300; ++i) {
    const int32_t rows = 1 + i % 8;
    budget.record(rows, first_ms + row_ms * (rows - 1));
  }
}

TEST(DraftBudget, LearnsWhatARowCosts) {
  DraftBudget budget(8);
  learn(budget, 10, 1.5);
  EXPECT_NEAR(budget.step_ms(1), 10, 0.3);
  EXPECT_NEAR(budget.row_ms(), 1.5, 0.1);
  learn(budget, 30, 0.9);  // another machine
  EXPECT_NEAR(budget.step_ms(8), 36.3, 1);
  EXPECT_NEAR(budget.row_ms(), 0.9, 0.2);
  for (int i = 0; i < 5; ++i) budget.record(1, 3000);  // somebody else had the cores
  EXPECT_LT(budget.step_ms(1), 45);
}

TEST(DraftBudget, BelievesTheUsualCostUntilRowsVary) {
  DraftBudget budget(8);
  for (int i = 0; i < 100; ++i) budget.record(1, 20);
  EXPECT_NEAR(budget.step_ms(1), 20, 1e-6);
  EXPECT_NEAR(budget.row_ms(), 0.14 * 20, 1e-6);
}

TEST(DraftBudget, DraftsFarWhenSureAndNotWhenUnsure) {
  DraftBudget budget(8);
  learn(budget, 10, 1.4);
  const DraftLookup good = sure(), bad = unsure();
  DraftShare share = share_of(good, 15);
  budget.share({&share, 1});
  EXPECT_EQ(share.count, 7);
  share = share_of(good, 3);
  budget.share({&share, 1});
  EXPECT_EQ(share.count, 3);
  share = share_of(bad, 15);
  budget.share({&share, 1});
  EXPECT_EQ(share.count, 0);
}

TEST(DraftBudget, DearRowsAreNotSpent) {
  DraftBudget budget(16);
  learn(budget, 10, 5);  // the most that is believed: half a step a row
  const DraftLookup good = sure();
  DraftShare share = share_of(good, 15);
  budget.share({&share, 1});
  EXPECT_GT(share.count, 0);
  DraftBudget cheap(16);
  learn(cheap, 10, 0.3);
  DraftShare more = share_of(good, 15);
  cheap.share({&more, 1});
  EXPECT_EQ(more.count, 15);
}

TEST(DraftBudget, SequencesShareTheRows) {
  DraftBudget budget(8);
  learn(budget, 10, 0.5);
  const DraftLookup good = sure();
  std::vector<DraftShare> shares(3, share_of(good, 15));
  budget.share(shares);
  int32_t rows = 3;
  for (const DraftShare& s : shares) {
    EXPECT_GE(s.count, 1);
    rows += s.count;
  }
  EXPECT_EQ(rows, 8);
  std::vector<DraftShare> many(9, share_of(good, 15));
  budget.share(many);
  for (const DraftShare& s : many) EXPECT_EQ(s.count, 0);
}

TEST(DraftBudget, AStreamWithoutDraftsIsNotSlowedBeyondTheBound) {
  DraftBudget budget(16);
  learn(budget, 10, 1);
  const DraftLookup good = sure();
  std::vector<DraftShare> shares = {share_of(good, 15), share_of(good, 0)};
  budget.share(shares);
  EXPECT_GE(shares[0].count, 3);
  EXPECT_LE(budget.step_ms(2 + shares[0].count), 1.4 * budget.step_ms(2) + 1e-9);
  EXPECT_EQ(shares[1].count, 0);
}

TEST(DraftBudget, WhatADraftCostsToMakeCounts) {
  DraftBudget budget(8);
  learn(budget, 10, 0.5);
  DraftShare share{.most = 7};
  share.chance.fill(0.8f);
  budget.share({&share, 1});
  const int32_t free = share.count;
  share = {.chance = share.chance, .most = 7, .draft_ms = 1.5};
  budget.share({&share, 1});
  EXPECT_GT(free, share.count);
  EXPECT_GT(share.count, 0);
  share = {.chance = share.chance, .most = 7, .draft_ms = 8};  // nearly a step each
  budget.share({&share, 1});
  EXPECT_EQ(share.count, 0);
  // Of two as likely the cheaper one is drafted further.
  std::vector<DraftShare> two(2, {.chance = share.chance, .most = 7});
  two[0].draft_ms = 1;
  budget.share(two);
  EXPECT_GT(two[1].count, two[0].count);
}

}  // namespace
}  // namespace wok
