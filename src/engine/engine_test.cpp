// The engine on a synthetic model: what users may rely on whatever else is running.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include "tests/support/engine_collector.h"
#include "tests/support/tiny_model.h"

namespace wok {
namespace {

using test::expect_pool_sums_up;
using test::make_tiny;
using test::prompt;
using test::request;
using test::Running;
using test::start;
using test::TinyModel;

class EngineTest : public testing::Test {
 protected:
  std::unique_ptr<Engine> make(EngineOptions options = {}) {
    options.threads = 2;
    if (options.kv_bytes == 0) options.kv_bytes = pages_bytes(512);
    auto engine = Engine::create(*tiny_.model, options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  uint64_t pages_bytes(int32_t pages) const {
    return tiny_.model->kv_shape(kKvFormat_f16).page_bytes() * static_cast<uint64_t>(pages);
  }
  std::vector<int32_t> alone(const Request& r) {
    auto engine = make();
    return start(*engine, r).events->wait();
  }
  // Runs them together: each gives what it gives alone.
  void expect_as_alone(Engine& engine, const std::vector<Request>& requests) {
    std::vector<Running> running;
    for (const Request& r : requests) running.push_back(start(engine, r));
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(running[i].events->wait(), alone(requests[i])) << "request " << i;
    }
  }
  TinyModel tiny_ = make_tiny({});
};

TEST_F(EngineTest, AloneEqualsBatched) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(
        request(prompt(static_cast<int32_t>(5 + 23 * i), i), 20 + 3 * static_cast<int32_t>(i), i));
  }
  auto engine = make({.max_sequences = 8, .token_budget = 64});
  std::vector<Running> running;
  for (const Request& r : requests) running.push_back(start(*engine, r));
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto got = running[i].events->wait();
    EXPECT_EQ(got.size(), static_cast<size_t>(requests[i].max_new_tokens));
    EXPECT_EQ(got, alone(requests[i])) << "request " << i;
    EXPECT_EQ(running[i].events->last().finish, FinishReason::kLength);
  }
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, PrefixCacheChangesNothingButTheWork) {
  const auto shared = prompt(100, 1);
  auto cached = make(), uncached = make({.prefix_cache = false});
  for (uint32_t i = 0; i < 4; ++i) {
    auto tokens = shared;
    for (const int32_t t : prompt(9, 50 + i)) tokens.push_back(t);
    const Request r = request(tokens, 30, i);
    Running a = start(*cached, r), b = start(*uncached, r);
    EXPECT_EQ(a.events->wait(), b.events->wait());
    EXPECT_EQ(a.events->last().cached_tokens, i == 0 ? 0 : 96);
    EXPECT_EQ(b.events->last().cached_tokens, 0);
  }
  expect_pool_sums_up(*cached);
  expect_pool_sums_up(*uncached);
  EXPECT_EQ(uncached->stats().pages_cached, 0);
}

TEST_F(EngineTest, RequestsThatArriveTogetherComputeTheirPrefixOnce) {
  auto engine = make({.token_budget = 64});
  const auto shared = prompt(200, 2);
  std::vector<Running> running;
  for (uint32_t i = 0; i < 8; ++i) {
    auto tokens = shared;
    tokens.push_back(static_cast<int32_t>(10 + i));
    running.push_back(start(*engine, request(tokens, 5, i)));
  }
  for (uint32_t i = 0; i < 8; ++i) {
    auto tokens = shared;
    tokens.push_back(static_cast<int32_t>(10 + i));
    EXPECT_EQ(running[i].events->wait(), alone(request(tokens, 5, i)));
  }
  // 201 tokens once, then 9 each (200 is 12 pages and 8 tokens).
  EXPECT_EQ(engine->stats().prompt_tokens, 201u + 7 * 9);
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, NamespacesDoNotShare) {
  auto engine = make();
  Request r = request(prompt(64, 3), 4, 1);
  r.prefix_namespace = 1;
  start(*engine, r).events->wait();
  r.prefix_namespace = 2;
  Running other = start(*engine, r);
  other.events->wait();
  EXPECT_EQ(other.events->last().cached_tokens, 0);
  Running same = start(*engine, r);
  same.events->wait();
  EXPECT_EQ(same.events->last().cached_tokens, 48);
}

// A pool that cannot hold all of them: some are preempted, and nobody's tokens change.
TEST_F(EngineTest, PreemptionChangesNoTokens) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request(prompt(40, 20 + i), 180, i));
  }
  auto engine = make({.context_tokens = 256, .kv_bytes = pages_bytes(36), .max_sequences = 6});
  expect_as_alone(*engine, requests);
  EXPECT_GT(engine->stats().preemptions, 0u);
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, AbortEndsARequestInEveryState) {
  auto engine = make({.max_sequences = 2, .token_budget = 32});
  Running decoding = start(*engine, request(prompt(8, 1), 3000, 1));
  decoding.events->wait_for_tokens(3);
  Running prefilling = start(*engine, request(prompt(3000, 2), 900, 2));
  Running queued = start(*engine, request(prompt(20, 3), 8, 3));
  for (Running* r : {&queued, &prefilling, &decoding}) {
    engine->abort(r->id);
    r->events->wait();
    EXPECT_EQ(r->events->last().finish, FinishReason::kAbort);
  }
  engine->abort(12345);  // unknown: ignored
  EXPECT_EQ(start(*engine, request(prompt(8, 4), 5, 4)).events->wait().size(), 5u);
  expect_pool_sums_up(*engine);
}

// With a target that nothing meets, every prompt beside a stream becomes a pass.
TEST_F(EngineTest, PromptsComputedLayerByLayerBesideStreamsChangeNoTokens) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 10; ++i) {
    requests.push_back(request(prompt(static_cast<int32_t>(4 + 31 * i), i), 40, i));
  }
  auto engine = make({.max_sequences = 6, .itl_target_ms = 1e-3});
  const Running stream = start(*engine, request(prompt(8, 77), 3000, 77));
  stream.events->wait_for_tokens(3);
  expect_as_alone(*engine, requests);
  engine->abort(stream.id);
  stream.events->wait();
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, PreemptionBesideAPassChangesNoTokens) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 6; ++i) requests.push_back(request(prompt(50, i), 300, i));
  auto engine = make({.context_tokens = 512, .kv_bytes = pages_bytes(40), .itl_target_ms = 1e-3});
  expect_as_alone(*engine, requests);
  EXPECT_GT(engine->stats().preemptions, 0u);
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, AbortInAPassLeavesTheOthersInItAlone) {
  auto engine = make({.itl_target_ms = 1e-3});
  const Running stream = start(*engine, request(prompt(8, 1), 3000, 1));
  stream.events->wait_for_tokens(3);
  for (uint32_t i = 0; i < 20; ++i) {
    const Request kept = request(prompt(90, 100 + i), 6, i);
    const Running aborted = start(*engine, request(prompt(900, 200 + i), 50, i));
    const Running other = start(*engine, kept);
    stream.events->wait_for_tokens(10 * (i + 1));
    engine->abort(aborted.id);
    aborted.events->wait();
    EXPECT_NE(aborted.events->last().finish, FinishReason::kNone);
    EXPECT_EQ(other.events->wait(), alone(kept));
  }
  engine->abort(stream.id);
  stream.events->wait();
  expect_pool_sums_up(*engine);
}

TEST_F(EngineTest, DestructionEndsEveryRequestWithAnEvent) {
  std::vector<Running> running;
  {
    auto engine = make({.max_sequences = 2});
    for (uint32_t i = 0; i < 5; ++i) {
      running.push_back(start(*engine, request(prompt(30, i), 450, i)));
    }
    running[0].events->wait_for_tokens(2);
  }
  for (Running& r : running) {
    r.events->wait();
    EXPECT_NE(r.events->last().finish, FinishReason::kNone);
  }
}

TEST_F(EngineTest, StopsAtStopTokensButNotBeforeMinTokens) {
  Request r = request(prompt(20, 9), 60, 9);
  const auto free_run = alone(r);
  r.stop_token_ids = {free_run[10]};
  auto engine = make();
  Running stopped = start(*engine, r);
  const auto tokens = stopped.events->wait();
  EXPECT_EQ(stopped.events->last().finish, FinishReason::kStop);
  EXPECT_EQ(tokens.back(), free_run[10]);
  EXPECT_LE(tokens.size(), 11u);
  r.sampling.min_tokens = 30;
  const auto later = start(*engine, r).events->wait();
  EXPECT_GT(later.size(), 30u);
  for (size_t i = 0; i < 30; ++i) EXPECT_NE(later[i], free_run[10]);
}

TEST_F(EngineTest, RefusesWhatCanNeverRun) {
  auto engine = make({.context_tokens = 128, .max_sequences = 1, .max_queued = 0});
  Request r = request(prompt(100, 1), 29, 1);
  r.sink = std::make_shared<test::Collector>();
  const auto too_long = engine->submit(r);
  EXPECT_EQ(too_long.error().kind, ErrorKind::kTooLarge);
  EXPECT_NE(too_long.error().message.find("n_prompt = 100"), std::string::npos);
  EXPECT_NE(too_long.error().message.find("n_ctx = 128"), std::string::npos);
  r.prompt = {};
  EXPECT_EQ(engine->submit(r).error().kind, ErrorKind::kInvalid);
  r.prompt = {5, 160};
  EXPECT_EQ(engine->submit(r).error().kind, ErrorKind::kInvalid);
  r.prompt = {5, -1};
  EXPECT_EQ(engine->submit(r).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(engine->stats().refused, 4u);

  // A request that outlasts the few lines of this test on the fastest machine.
  auto busy = make({.max_sequences = 1, .max_queued = 0});
  const Running first = start(*busy, request(prompt(10, 1), 4000, 1));
  r.prompt = {5};
  const auto second = busy->submit(r);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
  busy->drain();
  EXPECT_EQ(busy->submit(r).error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(busy->stats().refused, 2u);
  busy->abort(first.id);
  first.events->wait();
  EXPECT_EQ(first.events->last().finish, FinishReason::kAbort);
}

TEST_F(EngineTest, OptionsThatCannotWorkAreErrorsWithTheWayOut) {
  const auto error = [&](const EngineOptions& options) {
    auto engine = Engine::create(*tiny_.model, options);
    EXPECT_FALSE(engine.ok());
    return engine.ok() ? std::string() : engine.error().message;
  };
  EXPECT_NE(error({.kv_bytes = 1 << 10}).find("--kv-memory"), std::string::npos);
  EXPECT_NE(error({.kv_bytes = 1ull << 60}).find("missing"), std::string::npos);
  EXPECT_NE(error({.context_tokens = 100000}).find("--context"), std::string::npos);
  EXPECT_NE(error({.max_sequences = 0}).find("--max-sequences"), std::string::npos);
  EXPECT_NE(error({.token_budget = 3}).find("--token-budget"), std::string::npos);
  EXPECT_NE(error({.draft_tokens = 0}).find("--draft-tokens"), std::string::npos);
  EXPECT_NE(error({.draft_tokens = 16}).find("--draft-tokens"), std::string::npos);
}

TEST_F(EngineTest, ReportsLogprobsOfTheModelsOwnDistribution) {
  auto engine = make();
  Request r = request(prompt(20, 4), 6, 4);
  r.sampling.temperature = 0;
  r.sampling.top_logprobs = 3;
  Running run = start(*engine, r);
  const auto tokens = run.events->wait();
  const Event last = run.events->last();
  ASSERT_EQ(last.top_count, 3);
  EXPECT_EQ(last.top[0].token, tokens.back());
  EXPECT_FLOAT_EQ(last.top[0].logprob, last.logprob);
  EXPECT_GE(last.top[0].logprob, last.top[1].logprob);
  EXPECT_LT(last.logprob, 0.0f);
}

}  // namespace
}  // namespace wok
