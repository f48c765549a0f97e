// What engine tests share: requests, and a sink that collects one request's events.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace wok::test {

// Collects one request's events; wait() returns when the last one is there.
class Collector final : public EventSink {
 public:
  void on_event(const Event& event) noexcept override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(finish_, FinishReason::kNone) << "an event after the last one";
    if (event.token >= 0) {
      tokens_.push_back(event.token);
      events_.push_back(event);
      EXPECT_EQ(event.generated_tokens, static_cast<int32_t>(tokens_.size()));
    }
    last_ = event;
    finish_ = event.finish;
    changed_.notify_all();
  }
  std::vector<int32_t> wait() {
    std::unique_lock lock(mutex_);
    const bool done = changed_.wait_for(lock, std::chrono::seconds(60),
                                        [this] { return finish_ != FinishReason::kNone; });
    EXPECT_TRUE(done) << "no final event";
    return tokens_;
  }
  void wait_for_tokens(size_t n) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return tokens_.size() >= n || finish_ != FinishReason::kNone;
    }));
  }
  // Those that came with a token; after wait().
  const std::vector<Event>& events() const { return events_; }
  Event last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> tokens_;
  std::vector<Event> events_;
  Event last_;
  FinishReason finish_ = FinishReason::kNone;
};

struct Running {
  RequestId id = 0;
  std::shared_ptr<Collector> events;
};

inline std::vector<int32_t> prompt(int32_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& t : tokens) t = static_cast<int32_t>(3 + random() % 150);
  return tokens;
}

inline Request request(std::vector<int32_t> tokens, int32_t output, uint64_t seed) {
  Request r;
  r.prompt = std::move(tokens);
  r.max_new_tokens = output;
  r.sampling.seed = seed;
  r.sampling.temperature = 1.2f;
  return r;
}

inline Running start(Engine& engine, Request r) {
  Running running;
  running.events = std::make_shared<Collector>();
  r.sink = running.events;
  auto id = engine.submit(std::move(r));
  EXPECT_TRUE(id.ok()) << id.error().message;
  if (id.ok()) running.id = *id;
  return running;
}

inline void expect_pool_sums_up(const Engine& engine) {
  for (int i = 0; i < 500 && !engine.idle(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EngineStats s = engine.stats();
  for (int i = 0; i < 500 && s.running + s.waiting > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    s = engine.stats();
  }
  EXPECT_EQ(s.pages_held, 0);
  EXPECT_EQ(s.pages_free + s.pages_cached, s.pages_total);
}

}  // namespace wok::test
