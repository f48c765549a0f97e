// An engine for tests: every running request gets a token a round, on one thread that is step and
// output thread at once. Tokens are a function of prompt, seed and position, or a script.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"

namespace wok::test {

struct FakeEngineOptions {
  std::vector<int32_t> script;           // tokens of every answer, then end_id; empty: made up
  int32_t end_id = -1;                   // ends a script; made-up answers choose it now and then
  int32_t first_word = 256, words = 14;  // made-up answers are of these ids
  int32_t vocab = 276;
  int32_t context_tokens = 4096;
  int32_t max_sequences = 64, max_queued = 1024;
  std::chrono::microseconds token_delay{0};
  FinishReason fail_with = FinishReason::kNone;  // kError: the first event says so
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(FakeEngineOptions options) : options_(std::move(options)) {
    thread_ = std::thread([this] { loop(); });
  }
  ~FakeEngine() override {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  Result<RequestId> submit(Request request) override {
    std::lock_guard lock(mutex_);
    const auto tokens = static_cast<int64_t>(request.prompt.size()) + request.max_new_tokens;
    if (draining_) return Error{ErrorKind::kCancelled, "the engine is draining"};
    if (tokens > options_.context_tokens) return too_large("does not fit the window");
    if (request.prompt.empty()) return invalid("empty prompt");
    if (static_cast<int>(active_.size()) >= options_.max_sequences + options_.max_queued) {
      ++stats_.refused;
      return Error{ErrorKind::kBusy, "the queue is full"};
    }
    auto sequence = std::make_shared<Sequence>();
    sequence->id = ++last_id_;
    sequence->cached = cached_tokens(request.prompt, request.prefix_namespace);
    stats_.prompt_tokens += request.prompt.size();
    stats_.prefix_query_tokens += request.prompt.size();
    stats_.prefix_hit_tokens += sequence->cached;
    for (const int32_t token : request.prompt) {
      sequence->hash = mix(sequence->hash, static_cast<uint64_t>(token));
    }
    if (request.sampling.temperature > 0) {
      sequence->hash = mix(sequence->hash, request.sampling.seed);
    }
    sequence->request = std::move(request);
    active_.push_back(sequence);
    wake_.notify_all();
    return sequence->id;
  }

  void abort(RequestId id) override {
    std::lock_guard lock(mutex_);
    aborted_.insert(id);
    wake_.notify_all();
  }

  void drain() override {
    std::lock_guard lock(mutex_);
    draining_ = true;
  }
  bool idle() const override {
    std::lock_guard lock(mutex_);
    return active_.empty();
  }
  EngineStats stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    const auto active = static_cast<int32_t>(active_.size());
    stats.running = std::min(active, options_.max_sequences);
    stats.waiting = active - stats.running;
    stats.pages_total = 64;
    stats.pages_held = stats.running;
    stats.pages_free = 64 - stats.running;
    return stats;
  }
  int32_t context_tokens() const override { return options_.context_tokens; }

  // While paused no token comes, but aborts are honoured.
  void pause(bool paused) {
    std::lock_guard lock(mutex_);
    paused_ = paused;
    wake_.notify_all();
  }

 private:
  struct Sequence {
    RequestId id = 0;
    Request request;
    uint64_t hash = 0;
    int32_t cached = 0, generated = 0;
  };

  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
  }

  // Pages of 16 tokens that an earlier prompt of the namespace began with, too.
  int32_t cached_tokens(const std::vector<int32_t>& prompt, uint64_t space) {
    size_t best = 0;
    for (const auto& [other, other_space] : seen_) {
      if (other_space != space) continue;
      const auto end = std::mismatch(prompt.begin(), prompt.end(), other.begin(), other.end());
      best = std::max(best, static_cast<size_t>(end.first - prompt.begin()));
    }
    seen_.emplace_back(prompt, space);
    if (seen_.size() > 32) seen_.pop_front();
    return static_cast<int32_t>(std::min(best, prompt.size() - 1) / 16 * 16);
  }

  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock,
                 [this] { return ending_ || !aborted_.empty() || (!active_.empty() && !paused_); });
      const bool ending = ending_;
      const auto aborted = std::exchange(aborted_, {});
      auto batch = active_;
      const bool paused = paused_;
      lock.unlock();
      size_t rank = 0;
      for (const auto& sequence : batch) {
        if (ending || aborted.contains(sequence->id)) {
          finish(*sequence, FinishReason::kAbort);
        } else if (!paused && static_cast<int>(rank++) < options_.max_sequences) {
          step(*sequence);
        }
      }
      if (options_.token_delay.count() > 0) std::this_thread::sleep_for(options_.token_delay);
      lock.lock();
      ++stats_.steps;
      std::erase_if(active_,
                    [](const auto& sequence) { return sequence->request.sink == nullptr; });
      if (ending && active_.empty()) return;
    }
  }

  void step(Sequence& sequence) {
    if (options_.fail_with != FinishReason::kNone) return finish(sequence, options_.fail_with);
    const SamplingParams& sampling = sequence.request.sampling;
    Event event = event_of(sequence);
    event.token = choose(sequence);
    event.generated_tokens = ++sequence.generated;
    event.logprob = -0.25f;
    for (event.top_count = 0; event.top_count < sampling.top_logprobs; ++event.top_count) {
      event.top[event.top_count] = {(event.token + event.top_count) % options_.vocab,
                                    -0.25f - static_cast<float>(event.top_count)};
    }
    const auto& stops = sequence.request.stop_token_ids;
    const bool end = (event.token == options_.end_id && !sampling.ignore_eos) ||
                     std::find(stops.begin(), stops.end(), event.token) != stops.end();
    if (end && sequence.generated > sampling.min_tokens) {
      event.finish = FinishReason::kStop;
    } else if (sequence.generated >= sequence.request.max_new_tokens) {
      event.finish = FinishReason::kLength;
    }
    deliver(sequence, event);
  }

  int32_t choose(const Sequence& sequence) const {
    const auto position = static_cast<size_t>(sequence.generated);
    if (!options_.script.empty()) {
      return position < options_.script.size() ? options_.script[position] : options_.end_id;
    }
    const uint64_t hash = mix(sequence.hash, position + 1);
    if (options_.end_id >= 0 && position > 8 && hash % 41 == 0) return options_.end_id;
    return options_.first_word + static_cast<int32_t>((hash >> 8) % options_.words);
  }

  void finish(Sequence& sequence, FinishReason reason) {
    Event event = event_of(sequence);
    event.generated_tokens = sequence.generated;
    event.finish = reason;
    deliver(sequence, event);
  }

  Event event_of(const Sequence& sequence) const {
    Event event;
    event.request = sequence.id;
    event.prompt_tokens = static_cast<int32_t>(sequence.request.prompt.size());
    event.cached_tokens = sequence.cached;
    return event;
  }

  void deliver(Sequence& sequence, const Event& event) {
    sequence.request.sink->on_event(event);
    std::lock_guard lock(mutex_);
    stats_.generated_tokens += event.token >= 0;
    stats_.drafted_tokens += event.token >= 0 ? 4 : 0;  // for the metrics only
    stats_.accepted_draft_tokens += event.token >= 0;
    if (event.finish == FinishReason::kNone) return;
    stats_.aborted += event.finish == FinishReason::kAbort;
    stats_.finished_stop += event.finish == FinishReason::kStop;
    stats_.finished_length += event.finish == FinishReason::kLength;
    sequence.request.sink.reset();
  }

  const FakeEngineOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Sequence>> active_;
  std::unordered_set<RequestId> aborted_;
  std::deque<std::pair<std::vector<int32_t>, uint64_t>> seen_;
  EngineStats stats_;
  RequestId last_id_ = 0;
  bool draining_ = false, ending_ = false, paused_ = false;
  std::thread thread_;
};

}  // namespace wok::test
