// Speculation on and off give the same events, token for token and bit for bit, whatever a request
// asks for and whatever runs beside it. The tiny model repeats itself soon when it is asked for its
// best token, so that there is something to look up.
#include "engine/speculation.h"

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

Request greedy(std::vector<int32_t> tokens, int32_t output) {
  Request r = request(std::move(tokens), output, 1);
  r.sampling.temperature = 0;
  return r;
}

class SpeculationTest : public test::SpeculationFixture {
 protected:
  // A prompt that holds the loop the model is in, so that drafts are right from the first step.
  std::vector<int32_t> looping_prompt(uint32_t seed) {
    auto tokens = prompt(20, seed);
    const auto engine = make(Speculation::off);
    for (const int32_t t : start(*engine, greedy(tokens, 200)).events->wait()) tokens.push_back(t);
    return tokens;
  }
};

TEST_F(SpeculationTest, GreedyTokensAreTheSameInFewerSteps) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const EngineStats stats = expect_same({greedy(prompt(30, seed), 300)});
    EXPECT_GT(stats.accepted_draft_tokens, 200u);
    EXPECT_EQ(stats.steps + stats.accepted_draft_tokens, 300u);
  }
}

TEST_F(SpeculationTest, WithoutSlidingWindowsToo) {
  tiny_ = make_tiny({});
  const EngineStats stats = expect_same({greedy(prompt(40, 1), 300)});
  EXPECT_GT(stats.accepted_draft_tokens, 20u);
  EXPECT_GT(stats.drafted_tokens, 2 * stats.accepted_draft_tokens) << "this one loops seldom";
}

TEST_F(SpeculationTest, SeededSamplingWithEveryParameterIsTheSame) {
  uint64_t drafted = 0, accepted = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Request r = request(looping_prompt(seed), 200, seed);
    r.sampling.temperature = 0.4f;
    r.sampling.top_k = 40;
    r.sampling.top_p = 0.95f;
    r.sampling.repetition_penalty = 1.02f;
    r.sampling.presence_penalty = 0.05f;
    r.sampling.frequency_penalty = 0.02f;
    r.sampling.logit_bias = {{r.prompt.back(), 0.5f}, {9, -100.0f}};
    r.sampling.min_tokens = 100;
    r.stop_token_ids = {r.prompt[r.prompt.size() - 3]};
    const EngineStats stats = expect_same({r});
    drafted += stats.drafted_tokens;
    accepted += stats.accepted_draft_tokens;
  }
  EXPECT_GT(accepted, 30u);
  EXPECT_GT(drafted, accepted) << "some drafts must be wrong, or half of the code is not tested";
}

// Each token changes what the next is penalized for: rows sampled with a history that lacks the
// accepted ones before them would give other tokens.
TEST_F(SpeculationTest, PenaltiesSeeEveryTokenBefore) {
  Request r = greedy(looping_prompt(3), 150);
  r.sampling.frequency_penalty = 0.01f;
  EXPECT_GT(expect_same({r}).accepted_draft_tokens, 10u);
}

TEST_F(SpeculationTest, LogprobsAreTheSame) {
  Request best = greedy(looping_prompt(1), 60), drawn = request(looping_prompt(2), 60, 7);
  best.sampling.top_logprobs = 5;
  drawn.sampling.top_logprobs = 0;
  drawn.sampling.temperature = 0.5f;
  EXPECT_GT(expect_same({best, drawn}).accepted_draft_tokens, 10u);
}

TEST_F(SpeculationTest, ChoicesOfOnePrompt) {
  std::vector<Request> choices;
  for (uint64_t seed = 5; seed < 7; ++seed) {
    choices.push_back(request(looping_prompt(4), 120, seed));
    choices.back().sampling.temperature = 0.3f;
  }
  EXPECT_GT(expect_same(choices).drafted_tokens, 0u);
}

// The penalty makes the model go round eight tokens, as it did in the prompt: drafts hold all of
// them, and each is the stop token once.
TEST_F(SpeculationTest, AStopTokenInsideADraftEndsTheRequestThere) {
  uint64_t inside = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    Request r = greedy(prompt(20, seed), 64);
    for (int32_t t = 40; t < 48; ++t) r.sampling.logit_bias.push_back({t, 100.0f});
    r.sampling.frequency_penalty = 2;
    const auto off = make(Speculation::off);
    const auto round = start(*off, r).events->wait();
    r.prompt.insert(r.prompt.end(), round.begin(), round.end());
    const auto free_run = start(*off, r).events->wait();
    for (int32_t stop = 40; stop < 48; ++stop) {
      const auto first = std::find(free_run.begin(), free_run.end(), stop);
      ASSERT_NE(first, free_run.end());
      r.stop_token_ids = {stop};
      const auto on = make(Speculation::lookup);
      Running run = start(*on, r);
      EXPECT_EQ(run.events->wait(), std::vector<int32_t>(free_run.begin(), first + 1));
      EXPECT_EQ(run.events->last().finish, FinishReason::kStop);
      expect_pool_sums_up(*on);
      // The last step drafted more than it gave: the stop was not the draft's end.
      inside += on->stats().drafted_tokens > on->stats().accepted_draft_tokens;
    }
  }
  EXPECT_GT(inside, 5u);
}

TEST_F(SpeculationTest, LimitsHoldToTheToken) {
  const auto looping = looping_prompt(2);
  for (int32_t limit = 1; limit <= 20; ++limit) {
    const EngineStats stats = expect_same({greedy(looping, limit)});
    EXPECT_EQ(stats.generated_tokens, static_cast<uint64_t>(limit));
    if (limit > 3) {
      EXPECT_GT(stats.accepted_draft_tokens, 0u);
    }
  }
  // Up to the window's last token.
  const auto length = static_cast<int32_t>(looping.size());
  expect_same({greedy(looping, 36)}, {.context_tokens = length + 36});
}

TEST_F(SpeculationTest, MixedSequencesSideBySide) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 10; ++i) {
    Request r =
        request(prompt(static_cast<int32_t>(5 + 17 * i), i), 60 + 20 * static_cast<int32_t>(i), i);
    if (i % 2 == 0) r = greedy(looping_prompt(i), 60 + 20 * static_cast<int32_t>(i));
    if (i % 3 == 0) r.sampling.top_logprobs = 2;
    requests.push_back(std::move(r));
  }
  for (const int32_t drafts : {3, 7, 15}) {
    const EngineStats stats =
        expect_same(requests, {.max_sequences = 6, .token_budget = 64, .draft_tokens = drafts});
    EXPECT_GT(stats.accepted_draft_tokens, 0u) << drafts;
  }
}

TEST_F(SpeculationTest, PreemptionAndAFullPool) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 4; ++i) requests.push_back(greedy(prompt(40, 20 + i), 700));
  // Prompts do not wait for one another by the clock: two that run together need 94 pages.
  EngineOptions options;
  options.context_tokens = 768;
  options.kv_bytes = pages_bytes(60);
  options.max_sequences = 4;
  options.itl_target_ms = 1e6;
  const EngineStats stats = expect_same(requests, options);
  EXPECT_GT(stats.preemptions, 0u);
  EXPECT_GT(stats.accepted_draft_tokens, 0u);
}

// What a speculating engine leaves in the prefix tree is what the tokens say, not what was guessed.
TEST_F(SpeculationTest, TheTreeHoldsVerifiedTokensOnly) {
  const auto on = make(Speculation::lookup), off = make(Speculation::off);
  auto conversation = prompt(40, 6);
  uint64_t cached = 0;
  for (uint32_t turn = 0; turn < 5; ++turn) {
    Request r = greedy(conversation, 90);
    r.sampling.frequency_penalty = 0.05f;  // leaves its loops now and then
    Running a = start(*on, r), b = start(*off, r);
    const auto said = a.events->wait();
    EXPECT_EQ(said, b.events->wait());
    EXPECT_EQ(a.events->last().cached_tokens, b.events->last().cached_tokens);
    cached = static_cast<uint64_t>(a.events->last().cached_tokens);
    conversation.insert(conversation.end(), said.begin(), said.end());
    for (const int32_t t : prompt(5, 70 + turn)) conversation.push_back(t);
  }
  EXPECT_GT(cached, 300u);
  const EngineStats stats = on->stats();
  EXPECT_GT(stats.drafted_tokens, stats.accepted_draft_tokens);
  EXPECT_EQ(stats.pages_cached, off->stats().pages_cached);
}

TEST_F(SpeculationTest, AbortWithDraftsInFlight) {
  const auto engine = make(Speculation::lookup);
  const auto looping = looping_prompt(1);
  for (size_t round = 0; round < 5; ++round) {
    Running a = start(*engine, greedy(looping, 3000)), b = start(*engine, greedy(looping, 3000));
    a.events->wait_for_tokens(10 + 40 * round);
    for (Running* r : {&a, &b}) {
      engine->abort(r->id);
      r->events->wait();
      EXPECT_EQ(r->events->last().finish, FinishReason::kAbort);
    }
    expect_pool_sums_up(*engine);
  }
  EXPECT_GT(engine->stats().drafted_tokens, 0u);
}

TEST(Speculation, Names) {
  EXPECT_EQ(*parse_speculation("off"), Speculation::off);
  EXPECT_EQ(*parse_speculation("lookup"), Speculation::lookup);
  EXPECT_STREQ(speculation_name(Speculation::lookup), "lookup");
  const auto unknown = parse_speculation("draft");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "'draft' is no way to speculate; there are: off, lookup");
}

}  // namespace
}  // namespace wok
