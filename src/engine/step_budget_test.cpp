#include "engine/step_budget.h"

#include <gtest/gtest.h>

namespace wok {
namespace {

// A machine where a prefill token costs 0.5 ms.
StepBudget learned(double target_ms = 0) {
  StepBudget budget(512, target_ms);
  for (int i = 0; i < 50; ++i) budget.record(10, 20, 20);
  return budget;
}

// Prefill tokens that a step has room for.
int32_t room(const StepBudget& budget, int32_t decodes, double decode_ms, int32_t prompts) {
  const WaitingPrompts waiting{0, static_cast<double>(prompts)};
  return budget.share(decodes, decode_ms, budget.target_ms(decodes, decode_ms, waiting)).room;
}

TEST(StepBudget, TakesAllThereIsWithoutDecodesUnlessItLastsTooLong) {
  EXPECT_EQ(StepBudget(512, 0).share(0, 0, 0).tokens, 512);
  EXPECT_EQ(room(learned(), 0, 10, 1), 512);
  StepBudget slow(512, 0);
  slow.record(0, 100, 500);
  EXPECT_EQ(room(slow, 0, 10, 1), 80);  // 400 ms
  slow.record(0, 10, 500);
  EXPECT_EQ(room(slow, 0, 10, 1), 64);
  StepBudget small(48, 0);
  small.record(0, 10, 500);
  EXPECT_EQ(room(small, 0, 10, 1), 48);
}

TEST(StepBudget, BeforeAnythingIsKnownPromptsBesideStreamsAreAPass) {
  EXPECT_EQ(room(StepBudget(512, 0), 4, 10, 1), 0);
  EXPECT_EQ(room(learned(), 4, 0, 1), 0);
}

TEST(StepBudget, WhatHasNoRoomInAStepIsPlannedAsAPass) {
  EXPECT_EQ(learned().share(8, 10, 13).tokens, StepBudget::kPassTokens);
  EXPECT_EQ(learned().share(8, 10, 45).tokens, 70);
  EXPECT_EQ(StepBudget(16, 0).share(8, 10, 13).tokens, 16);
}

TEST(StepBudget, OnePromptBesideManyStreamsDisturbsThemLittle) {
  EXPECT_EQ(room(learned(), 8, 10, 1), 6);  // 0.3 x 10 ms
}

TEST(StepBudget, ManyPromptsGetTheirShareOfAStepThatStaysFluent) {
  EXPECT_EQ(room(learned(), 4, 10, 4), 20);   // 1 cubed: as long as the decodes
  EXPECT_EQ(room(learned(), 5, 10, 6), 34);   // 1.2 cubed
  EXPECT_EQ(room(learned(), 1, 10, 15), 50);  // up to 35 ms
  EXPECT_EQ(room(learned(), 1, 60, 15), 36);  // a step that is longer anyway: 0.3 x 60 ms
}

TEST(StepBudget, PromptsWithALongWayToGoHurryNobody) {
  EXPECT_DOUBLE_EQ(learned().target_ms(1, 10, {1, 0.1}), 13);  // 0.3 for each
  EXPECT_DOUBLE_EQ(learned().target_ms(1, 10, {4, 0.5}), 22);
  EXPECT_DOUBLE_EQ(learned().target_ms(1, 10, {4, 4}), 35);
}

// Who waits for a short answer to a short question waits for a few steps and not for dozens.
TEST(StepBudget, BriefPromptsAreDoneInAFewSteps) {
  EXPECT_DOUBLE_EQ(learned().target_ms(4, 10, {.soon = 1, .brief = 1}), 20);
  EXPECT_DOUBLE_EQ(learned().target_ms(16, 10, {.soon = 1, .brief = 1}), 13);  // 0.25, at least 0.3
  EXPECT_DOUBLE_EQ(learned().target_ms(12, 10, {.soon = 4, .brief = 4}), 10 * (1 + 4.0 * 4 / 12));
  EXPECT_DOUBLE_EQ(learned().target_ms(1, 10, {.soon = 1, .brief = 1}), 35);
}

TEST(StepBudget, KeepsTheTargetItWasGiven) {
  EXPECT_EQ(room(learned(30), 1, 10, 15), 40);
  EXPECT_EQ(room(learned(5), 1, 10, 15), 0);
  EXPECT_EQ(room(learned(1e300), 1, 10, 15), 512);
  EXPECT_LE(learned(1e300).target_ms(1, 10, {}), 1e9);  // a time of the clock
}

TEST(StepBudget, AStepFasterThanItsDecodesLeavesACost) {
  StepBudget budget(512, 0);
  budget.record(10, 10, 8);
  EXPECT_GT(room(budget, 4, 10, 1), 2);
  EXPECT_LT(room(budget, 4, 10, 1), 512);
}

}  // namespace
}  // namespace wok
