// Drafts by a second model: whatever it says, the events are those without it, bit for bit.
#include "engine/draft_model.h"

#include <gtest/gtest.h>

#include "tests/support/speculation_fixture.h"

namespace wok {
namespace {

using test::expect_pool_sums_up;
using test::make_tiny;
using test::prompt;
using test::request;
using test::Running;
using test::start;
using test::TinyModel;

class DraftModelTest : public test::SpeculationFixture {
 protected:
  DraftModelTest() { tiny_ = make_tiny({}); }
  EngineStats expect_same_with(const Model& draft, const std::vector<Request>& requests,
                               EngineOptions options = {}) {
    options.draft_model = &draft;
    const EngineStats stats = expect_same(requests, options);
    EXPECT_LE(stats.model_drafts_right, stats.model_drafts);
    EXPECT_LE(stats.model_drafts_right, stats.accepted_draft_tokens);
    return stats;
  }
};

// The model itself as its draft: nearly every guess is right, greedy and sampled.
TEST_F(DraftModelTest, OneThatSaysTheSameIsNearlyAlwaysRight) {
  const TinyModel same = make_tiny({});
  for (const float temperature : {0.0f, 1.2f}) {
    Request r = request(prompt(40, 1), 300, 5);
    r.sampling.temperature = temperature;
    r.sampling.top_logprobs = 1;
    const EngineStats stats = expect_same_with(*same.model, {r});
    EXPECT_GT(stats.model_drafts, 200u);
    EXPECT_GT(stats.model_drafts_right, stats.model_drafts * 9 / 10);
    EXPECT_LT(stats.steps, 100u);
  }
}

TEST_F(DraftModelTest, OneThatIsAlwaysWrongIsGivenUp) {
  const TinyModel other = make_tiny({.layers = 1}, "", 9);
  Request r = request(prompt(40, 1), 1500, 5);  // drawn at random: nothing to look up either
  const EngineStats stats = expect_same_with(*other.model, {r});
  EXPECT_GT(stats.model_drafts, 0u);
  EXPECT_LT(stats.model_drafts, 300u);
}

TEST_F(DraftModelTest, PenaltiesStopsAndLimitsHold) {
  const TinyModel same = make_tiny({});
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    Request r =
        request(prompt(10 + static_cast<int32_t>(i) * 30, i), 40 + static_cast<int32_t>(i), i);
    r.sampling.frequency_penalty = 0.1f;
    r.sampling.repetition_penalty = 1.1f;
    r.sampling.top_p = 0.9f;
    r.sampling.min_tokens = 10;
    r.stop_token_ids = {7, 8, 9, 10, 11, 12};
    requests.push_back(std::move(r));
  }
  EXPECT_GT(expect_same_with(*same.model, requests).model_drafts_right, 20u);
}

// More sequences than slots, prompts longer than what is read in a step, and a full pool.
TEST_F(DraftModelTest, ManySequencesAndPreemption) {
  const TinyModel same = make_tiny({});
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(request(prompt(30 + 60 * static_cast<int32_t>(i % 4), i), 150, i));
  }
  EngineOptions options;
  options.context_tokens = 768;
  options.kv_bytes = pages_bytes(60);
  options.max_sequences = 4;
  options.draft_tokens = 5;
  options.itl_target_ms = 1e6;
  const EngineStats stats = expect_same_with(*same.model, requests, options);
  EXPECT_GT(stats.model_drafts_right, 100u);
}

TEST_F(DraftModelTest, AbortFreesTheSlot) {
  const TinyModel same = make_tiny({});
  const auto engine =
      make(Speculation::lookup, {.draft_tokens = 2, .draft_model = same.model.get()});
  for (int round = 0; round < 6; ++round) {
    const uint64_t before = engine->stats().model_drafts;
    Running r = start(*engine, request(prompt(20, 3), 2000, 3));
    r.events->wait_for_tokens(200);
    engine->abort(r.id);
    r.events->wait();
    EXPECT_GT(engine->stats().model_drafts, before) << round;
  }
  expect_pool_sums_up(*engine);
}

// A shorter context and a shorter vocabulary only end the drafts.
TEST_F(DraftModelTest, WhatItCannotFollowIsComputedWithoutIt) {
  const TinyModel near = make_tiny({.context = 96}), narrow = make_tiny({.vocab = 120});
  Request r = request(prompt(30, 2), 200, 4);
  EngineStats stats = expect_same_with(*near.model, {r});
  EXPECT_GT(stats.model_drafts, 20u);
  EXPECT_LT(stats.model_drafts, 100u);
  r.prompt = std::vector<int32_t>(20, 5);
  expect_same_with(*narrow.model, {r});
  r.prompt.push_back(150);
  stats = expect_same_with(*narrow.model, {r});
  EXPECT_EQ(stats.model_drafts, 0u);
  // A longer vocabulary than the target's: what only it has is never guessed.
  const TinyModel wide = make_tiny({.vocab = 300});
  expect_same_with(*wide.model, {r});
}

TEST_F(DraftModelTest, NoMemoryForItsCacheIsAnError) {
  const auto made = DraftModel::create(*tiny_.model, 160, 4096, 2, 1000, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kNoMemory);
  EXPECT_NE(made.error().message.find("--context"), std::string::npos);
}

}  // namespace
}  // namespace wok
