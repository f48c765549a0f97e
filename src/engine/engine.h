// The engine: one model, one KV pool, one thread that runs steps. It never sees a string.
//
// Threads: submit(), abort(), stats() may be called from any thread. Events come on one output
// thread. The destructor aborts what is running, waits for both threads and delivers every last
// event first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/request.h"
#include "engine/speculation.h"

namespace wok {

class Model;

struct EngineOptions {
  int32_t threads = 0;         // 0: the CPUs this process may use
  int32_t context_tokens = 0;  // 0: what the model was trained for
  uint64_t kv_bytes = 0;       // 0: a share of free memory, at most what max_sequences needs
  int32_t max_sequences = 64;  // running at once
  int32_t max_queued = 1024;   // waiting; more are refused with kBusy
  int32_t token_budget = 512;  // tokens of one step
  double itl_target_ms = 0;    // 0: automatic (step_budget.h)
  bool prefix_cache = true;
  bool fast_prefill = false;  // prompts with weights rounded to 8 bits (ADR 10)
  Speculation speculation = Speculation::lookup;
  int32_t draft_tokens = 7;  // guesses that a step verifies at most, of all its sequences
  // Guesses beside those looked up (draft_model.h); must outlive the engine. Null: none.
  const Model* draft_model = nullptr;
  double draft_row_cost = 0;  // of verifying one, in decode steps; 0: measured (tests fix it)
  std::vector<int32_t> end_ids = {};  // the model's end-of-text and end-of-turn tokens
};

// A consistent snapshot; reading changes nothing.
struct EngineStats {
  uint64_t steps = 0;
  int64_t last_step_unix_ms = 0;  // forward progress, for /health
  int32_t running = 0, waiting = 0;
  uint64_t prompt_tokens = 0, generated_tokens = 0;
  uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;
  uint64_t drafted_tokens = 0, accepted_draft_tokens = 0;  // verified, those that were right
  uint64_t model_drafts = 0, model_drafts_right = 0;       // made by the draft model, right
  uint64_t preemptions = 0, aborted = 0, finished_stop = 0, finished_length = 0, refused = 0;
  int32_t pages_total = 0, pages_free = 0, pages_cached = 0, pages_held = 0;
  int32_t page_tokens = 0;
  uint64_t page_bytes = 0;
  double kv_waste = 0;  // reserved but unused / held bytes, now (0 when none is held)
};

class Engine {
 public:
  // `model` must outlive the engine. `pool`: what loading used, with options.threads threads; null:
  // a new one. Errors: kNoMemory says how much is missing and which options would fit; kInvalid
  // names the option.
  static Result<std::unique_ptr<Engine>> create(const Model& model, const EngineOptions& options,
                                                std::unique_ptr<ComputePool> pool = nullptr);
  virtual ~Engine() = default;

  // Errors: kTooLarge: can never fit (prompt + output over the window, or over the whole pool);
  // kBusy: the queue is full; kInvalid: empty prompt or a token id outside the vocabulary;
  // kCancelled: the engine is draining.
  virtual Result<RequestId> submit(Request request) = 0;

  // Ends the request within a step, in every state, or with the pass that computes its prompt
  // (docs/adr/0012); a final event follows, kAbort unless it was done by then. Unknown or finished
  // ids are ignored.
  virtual void abort(RequestId id) = 0;

  // Refuses new requests from now on; running ones go on.
  virtual void drain() = 0;
  // True when nothing runs or waits.
  virtual bool idle() const = 0;

  virtual EngineStats stats() const = 0;
  virtual int32_t context_tokens() const = 0;
};

}  // namespace wok
