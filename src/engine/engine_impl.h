// The engine's insides: shared by engine.cpp (any thread) and step.cpp (the step thread).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/draft_budget.h"
#include "engine/draft_lookup.h"
#include "engine/draft_model.h"
#include "engine/engine.h"
#include "engine/outbox.h"
#include "engine/step_batch.h"
#include "engine/step_budget.h"
#include "kv/page_fault_ahead.h"

namespace wok {

// A request inside the engine. Made and freed outside the token path.
struct ActiveRequest {
  Sequence sequence;
  Request request;
  std::vector<int32_t> stop_tokens;  // the request's and the model's: what min_tokens bars
  DraftLookup lookup;                // reserved when its first draft is looked for
  ModelDrafts by_model;
  int64_t submitted_ns = 0, admitted_ns = 0, first_token_ns = 0;
};

class EngineImpl final : public Engine {
 public:
  EngineImpl(const Model& model, const EngineOptions& options, int32_t context_tokens,
             std::unique_ptr<ComputePool> pool, PageMemory memory,
             std::unique_ptr<DraftModel> draft_model);
  ~EngineImpl() override;

  Result<RequestId> submit(Request request) override;
  void abort(RequestId id) override;
  void drain() override { draining_.store(true); }
  bool idle() const override { return in_flight_.load() == 0; }
  EngineStats stats() const override;
  int32_t context_tokens() const override { return context_tokens_; }

 private:
  void loop();
  bool take_inbox();
  void step(std::span<const ScheduledChunk> plan);
  std::span<const ScheduledChunk> add_drafts(std::span<const ScheduledChunk> plan);
  DraftShare draft_share(ActiveRequest& active, int32_t sequences);
  void draft_by_model(double step_ms);
  bool passing() const { return pass_.layer >= 0; }
  std::span<const ScheduledChunk> start_pass(std::span<const ScheduledChunk> plan, int32_t room);
  void advance_pass(int64_t until_ns);
  void end_pass();
  void drop_pass();
  void end_aborted(RequestId id);
  void tell();
  ActiveRequest& active_of(const Sequence& s) { return *active_.find(s.id)->second; }
  void note_admission(std::span<const ScheduledChunk> chunks);
  void sample(StepBatch& batch);
  void sample_rows(StepBatch& batch, SampledRows& outcome, Sampler& sampler);
  FinishReason reason_to_end(const ActiveRequest& active) const;
  void deliver(const StepBatch& batch);
  void finish(ActiveRequest& active, FinishReason reason, const SampledToken* token);
  Event make_event(const ActiveRequest& active, const SampledToken* token,
                   int32_t tokens_after = 0) const;
  void publish_stats();

  const Model& model_;
  const EngineOptions options_;
  const int32_t context_tokens_;
  std::unique_ptr<ComputePool> pool_;
  PageMemory memory_;
  PageFaultAhead fault_ahead_{memory_};
  PageCache cache_;
  Scheduler scheduler_;
  StepBatch batch_;
  StepBudget budget_;
  DraftBudget draft_budget_;
  std::vector<Sampler> samplers_;  // one a worker
  Outbox outbox_;

  std::unique_ptr<DraftModel> draft_model_;  // may be null
  std::vector<DraftShare> shares_;
  std::vector<DraftJob> jobs_;
  // Prompt chunks whose layers are computed a few beside each step (docs/adr/0012).
  struct Pass {
    StepBatch batch;
    int32_t layer = -1;                   // the next one; -1: no pass
    int64_t ns = 0, layer_ns = 0;         // of its layers so far; of the last one
    bool waited = false;                  // the last step had no time for a layer
    std::vector<RequestId> aborted = {};  // end with the pass
  } pass_;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> active_;  // step thread only

  mutable std::mutex inbox_mutex_;
  std::condition_variable inbox_wake_;
  std::deque<std::unique_ptr<ActiveRequest>> submitted_;  // guarded by inbox_mutex_
  std::vector<RequestId> aborted_;                        // guarded by inbox_mutex_
  std::atomic<bool> inbox_filled_{false}, stop_{false}, draining_{false};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<uint64_t> next_id_{1};

  mutable std::mutex stats_mutex_;
  EngineStats published_;  // guarded by stats_mutex_
  EngineStats counters_;   // step thread only
  std::atomic<uint64_t> refused_{0};
  std::thread thread_;
};

int64_t monotonic_ns();

}  // namespace wok
