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
  const auto end = [this](ActiveRequest& active) { finish(active, FinishReason::kAbort, nullptr); };
  for (const RequestId id : aborted) {
    if (const auto it = active_.find(id); it != active_.end()) end(*it->second);
  }
  if (stop_.load()) {
    while (!active_.empty()) end(*active_.begin()->second);
    outbox_.flush();
  }
  return !stop_.load();
}

void EngineImpl::loop() {
  while (take_inbox()) {
    const int32_t decodes = scheduler_.decoding();
    const int32_t prompts = scheduler_.running() - decodes + scheduler_.waiting();
    const double decode_ms = draft_budget_.step_ms(decodes);
    const auto plan =
        add_drafts(scheduler_.plan(budget_.prefill_tokens(decodes, decode_ms, prompts)));
    fault_ahead_.follow(cache_.used_pages());
    if (!plan.empty()) step(plan);
    publish_stats();
    // Events after the numbers: whoever has seen a request end finds it counted.
    outbox_.flush();
  }
}

void EngineImpl::build_batch(std::span<const ScheduledChunk> plan) {
  tokens_.clear();
  positions_.clear();
  token_sequence_.clear();
  logit_rows_.clear();
  outcomes_.clear();
  spans_.clear();
  const auto add = [this](const ScheduledChunk& chunk) {
    const Sequence& s = *chunk.sequence;
    const auto first = static_cast<int32_t>(tokens_.size());
    for (int32_t p = chunk.begin; p < chunk.begin + chunk.count; ++p) {
      tokens_.push_back(s.token_at(p));
      positions_.push_back(p);
      token_sequence_.push_back(static_cast<int32_t>(spans_.size()));
    }
    spans_.push_back({first, chunk.count, chunk.begin + chunk.count, s.pages.data()});
    if (!chunk.wants_logits) return;
    outcomes_.push_back({.active = active_.find(s.id)->second.get(),
                         .first_row = static_cast<int32_t>(logit_rows_.size())});
    // The last token's, and those of the drafts behind it.
    for (int32_t i = chunk.count - 1 - s.drafted; i < chunk.count; ++i) {
      logit_rows_.push_back(first + i);
    }
  };
  for (const ScheduledChunk& chunk : plan) {
    if (!chunk.of_prompt()) add(chunk);
  }
  exact_tokens_ = static_cast<int32_t>(tokens_.size());
  for (const ScheduledChunk& chunk : plan) {
    if (chunk.of_prompt()) add(chunk);
  }
  if (!options_.fast_prefill) exact_tokens_ = static_cast<int32_t>(tokens_.size());
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
void EngineImpl::sample_rows(SampledRows& outcome, Sampler& sampler) {
  ActiveRequest& active = *outcome.active;
  Sequence& s = active.sequence;
  const int32_t vocab = model_.config().vocab;
  for (int32_t i = 0;; ++i) {
    const int64_t row = outcome.first_row + i;
    SampledToken& out = sampled_[row];
    out = sampler.sample(
        {.params = &active.request.sampling,
         .tokens = s.tokens,
         .prompt_tokens = s.prompt_tokens,
         .stop_tokens = active.stop_tokens,
         .logits = {workspace_.logits.data() + row * vocab, static_cast<size_t>(vocab)}});
    s.tokens.push_back(out.token);
    outcome.tokens = i + 1;
    outcome.finish = reason_to_end(active);
    if (outcome.finish != FinishReason::kNone) return;
    if (i >= s.drafted || out.token != s.draft[i]) return;
  }
}

void EngineImpl::sample() {
  pool_->run(static_cast<int32_t>(outcomes_.size()),
             [&](int32_t i, int32_t worker) { sample_rows(outcomes_[i], samplers_[worker]); });
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
  outbox_.push_last(std::move(active.request.sink), event);
  active_.erase(active.sequence.id);
  in_flight_.fetch_sub(1);
}

void EngineImpl::deliver(const SampledRows& outcome) {
  ActiveRequest& active = *outcome.active;
  if (active.first_token_ns == 0) active.first_token_ns = monotonic_ns();
  counters_.generated_tokens += static_cast<uint64_t>(outcome.tokens);
  counters_.accepted_draft_tokens += static_cast<uint64_t>(outcome.tokens - 1);
  for (int32_t i = 0; i < outcome.tokens; ++i) {
    const SampledToken& token = sampled_[outcome.first_row + i];
    const int32_t after = outcome.tokens - 1 - i;
    if (after == 0 && outcome.finish != FinishReason::kNone) {
      finish(active, outcome.finish, &token);
    } else {
      outbox_.push(active.request.sink.get(), make_event(active, &token, after));
    }
  }
}

void EngineImpl::step(std::span<const ScheduledChunk> plan) {
  const int64_t begin = monotonic_ns();
  int32_t decodes = 0, prefill = 0, drafts = 0;
  for (const ScheduledChunk& chunk : plan) {
    ActiveRequest& active = *active_.find(chunk.sequence->id)->second;
    if (active.admitted_ns == 0) active.admitted_ns = begin;
    if (chunk.sequence->decoding()) {
      ++decodes;
      drafts += chunk.sequence->drafted;
    } else {
      prefill += chunk.count;
    }
  }
  build_batch(plan);
  model_.forward({tokens_, positions_, spans_, token_sequence_, logit_rows_, exact_tokens_},
                 memory_, *pool_, workspace_);
  sample();
  scheduler_.commit();
  counters_.prompt_tokens += static_cast<uint64_t>(prefill);
  counters_.drafted_tokens += static_cast<uint64_t>(drafts);
  ++counters_.steps;
  for (const SampledRows& outcome : outcomes_) deliver(outcome);
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
