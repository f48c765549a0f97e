// The step thread: inbox, plan, forward, sample, events; over and over.
#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "engine/engine_impl.h"

namespace wok {

// True when something may be done; false when the engine should end.
bool EngineImpl::take_inbox() {
  const bool idle = scheduler_.running() == 0 && scheduler_.waiting() == 0;
  // On the token path this is one load: the lock is taken only when someone put something in.
  if (!inbox_filled_.load(std::memory_order_acquire) && !idle) return true;
  std::unique_lock lock(inbox_mutex_);
  if (idle) inbox_wake_.wait(lock, [this] { return inbox_filled_.load(); });
  inbox_filled_.store(false);
  auto submitted = std::move(submitted_);
  submitted_.clear();
  auto aborted = std::move(aborted_);
  aborted_.clear();
  lock.unlock();
  for (auto& active : submitted) {
    scheduler_.add(&active->sequence);
    active_.emplace(active->sequence.id, std::move(active));
  }
  for (const RequestId id : aborted) end_aborted(id);
  if (stop_.load()) {
    drop_pass();
    while (!active_.empty()) finish(*active_.begin()->second, FinishReason::kAbort, nullptr);
    outbox_.flush();
  }
  return !stop_.load();
}

void EngineImpl::end_aborted(RequestId id) {
  const auto it = active_.find(id);
  if (it == active_.end()) return;
  if (it->second->sequence.in_pass) {
    pass_.aborted.push_back(id);
  } else {
    finish(*it->second, FinishReason::kAbort, nullptr);
  }
}

void EngineImpl::loop() {
  while (take_inbox()) {
    const int64_t begin = monotonic_ns();
    const int32_t decodes = scheduler_.decoding();
    const double decode_ms = draft_budget_.step_ms(decodes);
    const double target_ms = budget_.target_ms(decodes, decode_ms, scheduler_.prompts());
    const PrefillShare share = budget_.share(decodes, decode_ms, target_ms);
    auto plan = scheduler_.plan(share.tokens);
    if (!passing()) plan = start_pass(plan, share.room);
    plan = add_drafts(plan);
    fault_ahead_.follow(cache_.used_pages());
    if (!plan.empty()) step(plan);
    tell();
    if (passing()) {
      advance_pass(decodes > 0 ? begin + static_cast<int64_t>(target_ms * 1e6) : INT64_MAX / 2);
    }
  }
}

// Events after the numbers: whoever has seen a request end finds it counted.
void EngineImpl::tell() {
  publish_stats();
  outbox_.flush();
}

FinishReason EngineImpl::reason_to_end(const ActiveRequest& active) const {
  const Sequence& s = active.sequence;
  const auto is_in = [&](const std::vector<int32_t>& list) {
    return std::find(list.begin(), list.end(), s.tokens.back()) != list.end();
  };
  if (is_in(active.request.stop_token_ids) ||
      (!active.request.sampling.ignore_eos && is_in(options_.end_ids))) {
    return FinishReason::kStop;
  }
  return s.length() >= s.max_tokens ? FinishReason::kLength : FinishReason::kNone;
}

// Row by row, each with the tokens before it in the history, as if the steps had been taken one
// after another: a draft is right when it is the very token that would have been sampled. So
// speculation changes no token of a request, whatever its parameters.
void EngineImpl::sample_rows(StepBatch& batch, SampledRows& outcome, Sampler& sampler) {
  Sequence& s = *outcome.sequence;
  const ActiveRequest& active = active_of(s);
  const int32_t vocab = model_.config().vocab;
  for (int32_t i = 0;; ++i) {
    const int64_t row = outcome.first_row + i;
    SampledToken& out = batch.sampled[row];
    out = sampler.sample(
        {.params = &active.request.sampling,
         .tokens = s.tokens,
         .prompt_tokens = s.prompt_tokens,
         .stop_tokens = active.stop_tokens,
         .logits = {batch.workspace.logits.data() + row * vocab, static_cast<size_t>(vocab)}});
    s.tokens.push_back(out.token);
    outcome.tokens = i + 1;
    outcome.finish = reason_to_end(active);
    if (outcome.finish != FinishReason::kNone) return;
    if (i >= s.drafted || out.token != s.draft[i]) return;
  }
}

void EngineImpl::sample(StepBatch& batch) {
  pool_->run(static_cast<int32_t>(batch.outcomes.size()), [&](int32_t i, int32_t worker) {
    sample_rows(batch, batch.outcomes[i], samplers_[worker]);
  });
}

// tokens_after: how many the sequence has already beyond the event's.
Event EngineImpl::make_event(const ActiveRequest& active, const SampledToken* token,
                             int32_t tokens_after) const {
  const Sequence& s = active.sequence;
  Event event;
  event.request = s.id;
  event.prompt_tokens = s.prompt_tokens;
  event.cached_tokens = s.cached_tokens;
  event.generated_tokens = s.length() - s.prompt_tokens - tokens_after;
  if (token != nullptr) {
    event.token = token->token;
    event.logprob = token->logprob;
    event.top_count = token->top_count;
    for (int32_t i = 0; i < token->top_count; ++i) {
      event.top[i] = {token->top[i].token, token->top[i].logprob};
    }
  }
  return event;
}

void EngineImpl::finish(ActiveRequest& active, FinishReason reason, const SampledToken* token) {
  Event event = make_event(active, token);
  event.finish = reason;
  const int64_t now = monotonic_ns();
  const int64_t admitted = active.admitted_ns > 0 ? active.admitted_ns : now;
  const int64_t first = active.first_token_ns > 0 ? active.first_token_ns : now;
  event.queue_ns = admitted - active.submitted_ns;
  event.prefill_ns = first - admitted;
  event.decode_ns = now - first;
  if (reason == FinishReason::kStop) ++counters_.finished_stop;
  if (reason == FinishReason::kLength) ++counters_.finished_length;
  if (reason == FinishReason::kAbort) ++counters_.aborted;
  scheduler_.finish(&active.sequence);
  if (draft_model_ != nullptr) draft_model_->release(active.by_model);
  outbox_.push_last(std::move(active.request.sink), event);
  active_.erase(active.sequence.id);
  in_flight_.fetch_sub(1);
}

void EngineImpl::deliver(const StepBatch& batch) {
  for (const SampledRows& outcome : batch.outcomes) {
    ActiveRequest& active = active_of(*outcome.sequence);
    if (active.first_token_ns == 0) active.first_token_ns = monotonic_ns();
    counters_.generated_tokens += static_cast<uint64_t>(outcome.tokens);
    counters_.accepted_draft_tokens += static_cast<uint64_t>(outcome.tokens - 1);
    if (active.by_model.drafted()) {
      counters_.model_drafts_right += static_cast<uint64_t>(outcome.tokens - 1);
    }
    for (int32_t i = 0; i < outcome.tokens; ++i) {
      const SampledToken& token = batch.sampled[outcome.first_row + i];
      const int32_t after = outcome.tokens - 1 - i;
      if (after == 0 && outcome.finish != FinishReason::kNone) {
        finish(active, outcome.finish, &token);
      } else {
        outbox_.push(active.request.sink.get(), make_event(active, &token, after));
      }
    }
  }
}

void EngineImpl::note_admission(std::span<const ScheduledChunk> chunks) {
  for (const ScheduledChunk& chunk : chunks) {
    ActiveRequest& active = active_of(*chunk.sequence);
    if (active.admitted_ns == 0) active.admitted_ns = monotonic_ns();
  }
}

void EngineImpl::step(std::span<const ScheduledChunk> plan) {
  const int64_t begin = monotonic_ns();
  int32_t decodes = 0, prefill = 0, drafts = 0;
  for (const ScheduledChunk& chunk : plan) {
    if (chunk.sequence->decoding()) {
      ++decodes;
      drafts += chunk.sequence->drafted;
    } else {
      prefill += chunk.count;
    }
  }
  if (prefill > 0) note_admission(plan);
  batch_.build(plan, options_.fast_prefill);
  model_.forward(batch_.view(), memory_, *pool_, batch_.workspace);
  sample(batch_);
  scheduler_.commit();
  counters_.prompt_tokens += static_cast<uint64_t>(prefill);
  counters_.drafted_tokens += static_cast<uint64_t>(drafts);
  ++counters_.steps;
  deliver(batch_);
  const double step_ms = static_cast<double>(monotonic_ns() - begin) * 1e-6;
  if (prefill == 0) draft_budget_.record(decodes + drafts, step_ms);
  budget_.record(decodes > 0 ? draft_budget_.step_ms(decodes + drafts) : 0, prefill, step_ms);
}

void EngineImpl::publish_stats() {
  EngineStats& c = counters_;
  c.last_step_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  c.running = scheduler_.running();
  c.waiting = scheduler_.waiting();
  c.prefix_query_tokens = scheduler_.prefix_query_tokens();
  c.prefix_hit_tokens = scheduler_.prefix_hit_tokens();
  c.preemptions = scheduler_.preemptions();
  c.pages_total = cache_.pages();
  c.pages_free = cache_.free_pages();
  c.pages_cached = cache_.cached_pages();
  c.pages_held = cache_.held_pages();
  c.page_tokens = kPageTokens;
  c.page_bytes = memory_.shape().page_bytes();
  const int64_t held = scheduler_.held_tokens(), used = scheduler_.used_tokens();
  c.kv_waste = held > 0 ? 1.0 - static_cast<double>(used) / static_cast<double>(held) : 0.0;
  // A reader may hold the lock for the time of a copy; then this step's numbers wait for the next.
  // When the engine is about to sleep there is no next step, so then it waits.
  const bool last = c.running == 0 && c.waiting == 0;
  std::unique_lock lock(stats_mutex_, std::defer_lock);
  if (last) lock.lock();
  if (lock.owns_lock() || lock.try_lock()) published_ = c;
}

}  // namespace wok
