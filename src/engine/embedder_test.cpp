#include "engine/embedder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <semaphore>

namespace wok {
namespace {

// A "vector" of one number: the sum of the tokens. Waits at a gate where a test wants it to.
class SumModel final : public EmbeddingModel {
 public:
  int32_t context_tokens() const override { return 8; }
  int32_t batch_tokens() const override { return 8; }
  int32_t vocab() const override { return 100; }
  int32_t token_types() const override { return 2; }
  bool ranks() const override { return true; }
  int32_t width() const override { return 1; }
  void compute(std::span<const TokenSequence* const> sequences, float* out) override {
    std::vector<int32_t> first;
    for (size_t i = 0; i < sequences.size(); ++i) {
      out[i] = 0;
      for (const int32_t token : sequences[i]->tokens) out[i] += static_cast<float>(token);
      first.push_back(sequences[i]->tokens[0]);
    }
    batches.push_back(first);
    entered.release();
    gate.acquire();
  }

  std::vector<std::vector<int32_t>> batches;  // first tokens
  std::counting_semaphore<> gate{0}, entered{0};
};

struct Fixture {
  explicit Fixture(int32_t max_queued = 8) {
    auto owned = std::make_unique<SumModel>();
    model = owned.get();
    embedder = std::make_unique<Embedder>(std::make_unique<ComputePool>(1), std::move(owned),
                                          Embedder::Options{max_queued});
  }
  // Asks for sequences that each begin with `mark` and have `length` tokens.
  Result<RequestId> submit(int32_t mark, int32_t count, int32_t length,
                           std::promise<EmbeddingResult>& promise) {
    std::vector<TokenSequence> sequences(count);
    for (TokenSequence& s : sequences) s.tokens.assign(static_cast<size_t>(length), mark);
    return embedder->submit(std::move(sequences), [&promise](EmbeddingResult result) {
      promise.set_value(std::move(result));
    });
  }

  SumModel* model;
  std::unique_ptr<Embedder> embedder;
};

TEST(Embedder, RequestsTakeTurnsAndShareBatches) {
  Fixture f;
  std::promise<EmbeddingResult> first, large, small;
  ASSERT_TRUE(f.submit(1, 1, 8, first).ok());
  f.model->entered.acquire();  // the worker is busy: what comes now waits
  ASSERT_TRUE(f.submit(2, 5, 3, large).ok());
  ASSERT_TRUE(f.submit(3, 1, 2, small).ok());
  EXPECT_EQ(f.embedder->stats().waiting, 2);
  EXPECT_EQ(f.embedder->stats().running, 1);
  f.model->gate.release(100);
  EXPECT_EQ(first.get_future().get().value(), std::vector<float>{8});
  EXPECT_EQ(small.get_future().get().value(), std::vector<float>{6});
  EXPECT_EQ(large.get_future().get().value(), std::vector<float>(5, 6));
  const std::vector<std::vector<int32_t>> want = {{1}, {2, 3, 2}, {2, 2}, {2}};
  EXPECT_EQ(f.model->batches, want) << "the short request waits for one batch";
  EXPECT_TRUE(f.embedder->idle());
  EXPECT_EQ(f.embedder->stats().prompt_tokens, 25u);
  EXPECT_EQ(f.embedder->stats().steps, 4u);
}

TEST(Embedder, RefusesWhatItCannotTake) {
  Fixture f(1);
  std::promise<EmbeddingResult> unused, first, second;
  EXPECT_EQ(f.submit(1, 0, 1, unused).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(f.submit(1, 1, 0, unused).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(f.submit(1, 1, 9, unused).error().kind, ErrorKind::kTooLarge);
  EXPECT_EQ(f.submit(100, 1, 1, unused).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(f.submit(-1, 1, 1, unused).error().kind, ErrorKind::kInvalid);
  const auto typed = f.embedder->submit({{{1}, {2}}}, [](const EmbeddingResult&) {});
  EXPECT_EQ(typed.error().kind, ErrorKind::kInvalid) << "a type it has not";
  ASSERT_TRUE(f.submit(1, 1, 1, first).ok());
  f.model->entered.acquire();
  ASSERT_TRUE(f.submit(1, 1, 1, second).ok());
  EXPECT_EQ(f.submit(1, 1, 1, unused).error().kind, ErrorKind::kBusy);
  f.embedder->drain();
  EXPECT_EQ(f.submit(1, 1, 1, unused).error().kind, ErrorKind::kCancelled);
  f.model->gate.release(100);
  EXPECT_TRUE(first.get_future().get().ok());
  EXPECT_TRUE(second.get_future().get().ok()) << "a drain lets what waits finish";
}

TEST(Embedder, CancelledRequestsEnd) {
  Fixture f;
  std::promise<EmbeddingResult> running, waiting, other;
  const auto id = f.submit(1, 4, 8, running);
  f.model->entered.acquire();
  const auto second = f.submit(2, 1, 8, waiting);
  ASSERT_TRUE(f.submit(3, 1, 8, other).ok());
  f.embedder->cancel(*id);
  f.embedder->cancel(*second);
  f.embedder->cancel(12345);
  f.model->gate.release(100);
  EXPECT_EQ(running.get_future().get().error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(waiting.get_future().get().error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(other.get_future().get().ok());
  EXPECT_EQ(f.model->batches.size(), 2u) << "nothing more was computed of the cancelled ones";
  EXPECT_EQ(f.embedder->stats().aborted, 2u);
}

TEST(Embedder, EndsWithAnAnswerForAll) {
  std::promise<EmbeddingResult> running, waiting;
  {
    Fixture f;
    ASSERT_TRUE(f.submit(1, 1, 8, running).ok());
    f.model->entered.acquire();
    ASSERT_TRUE(f.submit(2, 1, 8, waiting).ok());
    f.model->gate.release(100);
  }
  EXPECT_TRUE(running.get_future().get().ok());
  // Either: the worker may have been faster than the end.
  EXPECT_EQ(waiting.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

}  // namespace
}  // namespace wok
