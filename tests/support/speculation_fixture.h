// Speculation on and off beside each other: the events have to be the same, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/engine_collector.h"
#include "tests/support/tiny_model.h"

namespace wok::test {

inline void expect_same_event(const Event& a, const Event& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.finish, b.finish);
  EXPECT_EQ(a.logprob, b.logprob);
  ASSERT_EQ(a.top_count, b.top_count);
  for (int32_t i = 0; i < a.top_count; ++i) {
    EXPECT_EQ(a.top[i].token, b.top[i].token);
    EXPECT_EQ(a.top[i].logprob, b.top[i].logprob);
  }
}

class SpeculationFixture : public testing::Test {
 protected:
  std::unique_ptr<Engine> make(Speculation speculation, EngineOptions options = {}) {
    options.threads = 2;
    options.speculation = speculation;
    options.draft_row_cost = 0.03;  // by the clock nothing would be certain to be drafted
    if (options.kv_bytes == 0) options.kv_bytes = pages_bytes(512);
    auto engine = Engine::create(*tiny_.model, options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  uint64_t pages_bytes(int32_t pages) const {
    return tiny_.model->kv_shape(kKvFormat_f16).page_bytes() * static_cast<uint64_t>(pages);
  }
  // Runs the requests at once with and without speculation; the speculating engine's numbers.
  EngineStats expect_same(const std::vector<Request>& requests, const EngineOptions& options = {}) {
    std::vector<Running> with, without;
    const auto on = make(Speculation::lookup, options), off = make(Speculation::off, options);
    for (const Request& r : requests) with.push_back(start(*on, r));
    for (const Request& r : requests) without.push_back(start(*off, r));
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(with[i].events->wait(), without[i].events->wait());
      const auto& a = with[i].events->events();
      const auto& b = without[i].events->events();
      EXPECT_EQ(a.size(), b.size());
      for (size_t e = 0; e < std::min(a.size(), b.size()); ++e) expect_same_event(a[e], b[e]);
    }
    expect_pool_sums_up(*on);
    expect_pool_sums_up(*off);
    const EngineStats stats = on->stats();
    EXPECT_GE(stats.drafted_tokens, stats.accepted_draft_tokens);
    EXPECT_EQ(stats.generated_tokens, off->stats().generated_tokens);
    EXPECT_EQ(off->stats().drafted_tokens, 0u);
    return stats;
  }
  TinyModel tiny_ = make_tiny(tiny_gemma());
};

}  // namespace wok::test
