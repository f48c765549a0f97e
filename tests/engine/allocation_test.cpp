// The warm token path allocates nothing: counts every operator new of the whole process while
// several sequences decode with the costlier sampling options.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "engine/engine.h"
#include "tests/support/tiny_model.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

void* counted(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  std::abort();
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace wok {
namespace {

// Counts tokens; the count is watched by polling, so that waiting allocates nothing either.
class Counter final : public EventSink {
 public:
  void on_event(const Event& event) noexcept override {
    if (event.token >= 0) tokens.fetch_add(1);
    if (event.finish != FinishReason::kNone) done.store(true);
  }
  std::atomic<int> tokens{0};
  std::atomic<bool> done{false};
};

void wait_for(const Counter& counter, int tokens) {
  while (counter.tokens.load() < tokens && !counter.done.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Engines {
  bool prefix_cache = true;
  Speculation speculation = Speculation::off;
};

long allocations_while_decoding(const SamplingParams& sampling, const Engines& engines = {}) {
  const test::TinyModel tiny = test::make_tiny({});
  EngineOptions options;
  options.threads = 2;
  options.kv_bytes = tiny.model->kv_shape(kKvFormat_f16).page_bytes() * 1024;
  options.prefix_cache = engines.prefix_cache;
  options.speculation = engines.speculation;
  auto engine = Engine::create(*tiny.model, options);
  EXPECT_TRUE(engine.ok());
  std::vector<std::shared_ptr<Counter>> counters;
  for (int i = 0; i < 4; ++i) {
    Request request;
    for (int t = 0; t < 20 + i; ++t) request.prompt.push_back(3 + t);
    request.sampling = sampling;
    request.sampling.seed = static_cast<uint64_t>(i);
    request.max_new_tokens = 3000;  // far beyond the window that is counted
    counters.push_back(std::make_shared<Counter>());
    request.sink = counters.back();
    EXPECT_TRUE((*engine)->submit(std::move(request)).ok());
  }
  wait_for(*counters[3], 40);
  const EngineStats before = (*engine)->stats();
  allocations.store(0);
  counting.store(true);
  wait_for(*counters[0], 400);
  counting.store(false);
  const EngineStats after = (*engine)->stats();
  EXPECT_EQ(after.drafted_tokens > before.drafted_tokens, engines.speculation != Speculation::off);
  EXPECT_FALSE(counters[0]->done.load()) << "the window must lie inside the decode";
  return allocations.load();
}

TEST(Allocations, TheHookCounts) {
  counting.store(true);
  const long before = allocations.load();
  delete new int(1);
  counting.store(false);
  EXPECT_GT(allocations.load(), before);
}

TEST(Allocations, GreedyDecodeAllocatesNothing) {
  EXPECT_EQ(allocations_while_decoding({.temperature = 0}), 0);
}

TEST(Allocations, DecodeWithDraftsAllocatesNothing) {
  EXPECT_EQ(allocations_while_decoding({.temperature = 0}, {.speculation = Speculation::lookup}),
            0);
}

TEST(Allocations, SampledDecodeWithPenaltiesAndLogprobsAllocatesNothing) {
  EXPECT_EQ(allocations_while_decoding({.temperature = 0.8f,
                                        .top_k = 40,
                                        .top_p = 0.9f,
                                        .min_p = 0.01f,
                                        .typical_p = 0.9f,
                                        .repetition_penalty = 1.1f,
                                        .presence_penalty = 0.1f,
                                        .frequency_penalty = 0.1f,
                                        .top_logprobs = 5}),
            0);
}

TEST(Allocations, DecodeWithoutPrefixCacheAllocatesNothing) {
  EXPECT_EQ(allocations_while_decoding({}, {.prefix_cache = false}), 0);
}

}  // namespace
}  // namespace wok
