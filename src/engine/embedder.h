// The engine of models that make vectors or scores instead of text: a bounded queue and one worker,
// which takes sequences of all waiting requests in turn and computes them in batches. A request of
// a thousand texts holds up one of a single text by a batch, not by itself.
//
// Threads: everything may be called from any thread. The destructor cancels what waits, and every
// request has had its answer when it returns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "models/embedding_model.h"

namespace wok {

// What came of a request: [sequences, width] numbers, or kCancelled.
using EmbeddingResult = Result<std::vector<float>>;

class Embedder {
 public:
  struct Options {
    int32_t max_queued = 1024;  // requests that wait; more are refused with kBusy
  };

  // `pool` is what the model computes on.
  Embedder(std::unique_ptr<ComputePool> pool, std::unique_ptr<EmbeddingModel> model,
           const Options& options);
  ~Embedder();
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  const EmbeddingModel& model() const { return *model_; }

  // `done` is called once, on the worker's thread (it must be quick), unless an error comes back:
  // kTooLarge: a sequence is longer than the window; kBusy: the queue is full; kInvalid: an empty
  // sequence, or an id outside the vocabulary; kCancelled: draining.
  Result<RequestId> submit(std::vector<TokenSequence> sequences,
                           std::function<void(EmbeddingResult)> done);

  // Ends the request with the batch that runs; `done` gets kCancelled unless it was ready by then.
  void cancel(RequestId id);

  void drain();  // refuses new requests from now on
  bool idle() const;
  EngineStats stats() const;  // what concerns no keys and no generated tokens

 private:
  struct Job {
    RequestId id = 0;
    std::vector<TokenSequence> sequences;
    std::function<void(EmbeddingResult)> done;
    std::vector<float> values;
    size_t next = 0, left = 0;  // the first not yet computed; how many have no result
    bool cancelled = false;
  };
  struct Place {
    std::shared_ptr<Job> job;
    size_t index;
  };

  Status check(const std::vector<TokenSequence>& sequences) const;
  void work();
  std::vector<std::shared_ptr<Job>> take_cancelled();
  void take_batch();
  void compute();

  const std::unique_ptr<ComputePool> pool_;
  const std::unique_ptr<EmbeddingModel> model_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;   // that have sequences which no batch has taken
  std::vector<std::shared_ptr<Job>> begun_;  // not in the queue any more, and not done
  RequestId last_id_ = 0;
  bool draining_ = false, stopping_ = false;
  EngineStats stats_;

  // The worker's own.
  std::vector<Place> batch_;
  std::vector<const TokenSequence*> sequences_;
  std::vector<float> results_;
  std::thread thread_;
};

}  // namespace wok
