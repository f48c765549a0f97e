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

TEST(StepBudget, TakesAllThereIsWithoutDecodes) {
  EXPECT_EQ(learned().prefill_tokens(0, 10, 1), 512);
}

TEST(StepBudget, BeginsCarefullyBeforeAnythingIsKnown) {
  EXPECT_EQ(StepBudget(512, 0).prefill_tokens(4, 10, 1), 2);
  EXPECT_EQ(learned().prefill_tokens(4, 0, 1), 2);
}

TEST(StepBudget, OnePromptBesideManyStreamsDisturbsThemLittle) {
  EXPECT_EQ(learned().prefill_tokens(8, 10, 1), 8);  // 0.4 x 10 ms
}

TEST(StepBudget, ManyPromptsGetTheirShareOfAStepThatStaysFluent) {
  EXPECT_EQ(learned().prefill_tokens(4, 10, 2), 20);   // as long as the decodes
  EXPECT_EQ(learned().prefill_tokens(1, 10, 15), 70);  // up to 45 ms
  EXPECT_EQ(learned().prefill_tokens(1, 60, 15), 48);  // a step that is longer anyway: 0.4 x 60 ms
}

TEST(StepBudget, KeepsTheTargetItWasGiven) {
  EXPECT_EQ(learned(30).prefill_tokens(1, 10, 15), 40);
  EXPECT_EQ(learned(5).prefill_tokens(1, 10, 15), 2);
}

TEST(StepBudget, AStepFasterThanItsDecodesLeavesACost) {
  StepBudget budget(512, 0);
  budget.record(10, 10, 8);
  EXPECT_GT(budget.prefill_tokens(4, 10, 1), 2);
  EXPECT_LT(budget.prefill_tokens(4, 10, 1), 512);
}

}  // namespace
}  // namespace wok
