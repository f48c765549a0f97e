// Speculation's part of a step: which guesses are computed with it.
#include <algorithm>

#include "engine/engine_impl.h"

namespace wok {
namespace {

// Of a step's time, for the draft model to read what it missed of a sequence.
constexpr double kReadShare = 0.3;

}  // namespace

// The likelier of what is looked up and what the draft model would say; looking up is free.
DraftShare EngineImpl::draft_share(ActiveRequest& active, int32_t sequences) {
  const Sequence& s = active.sequence;
  DraftLookup& lookup = active.lookup;
  if (!lookup.started()) lookup.start(s.tokens, s.max_tokens);
  lookup.follow(s.tokens);
  const int32_t most = std::min(s.max_tokens - s.length() - 1, options_.draft_tokens);
  DraftShare share{.most = lookup.has_proposal() ? most : 0};
  for (int32_t i = 0; i < share.most; ++i) share.chance[i] = lookup.chance(i);
  if (draft_model_ == nullptr) return share;
  ModelDrafts& by_model = active.by_model;
  by_model.follow(s.tokens);
  if (most <= 0 || !draft_model_->start(s, by_model)) return share;
  if (share.most > 0 && share.chance[0] >= by_model.chance()) return share;
  share.by_model = true;
  share.most = most;
  share.chance.fill(by_model.chance());
  share.draft_ms =
      options_.draft_row_cost > 0 ? options_.draft_row_cost : draft_model_->draft_ms(sequences);
  return share;
}

void EngineImpl::draft_by_model(double step_ms) {
  draft_model_->draft(jobs_, kReadShare * step_ms, *pool_);
  for (const DraftJob& job : jobs_) {
    job.sequence->drafted = job.count;
    counters_.model_drafts += static_cast<uint64_t>(job.count);
  }
}

std::span<const ScheduledChunk> EngineImpl::add_drafts(std::span<const ScheduledChunk> plan) {
  // With so many sequences a step has rows enough, and beside a prefill its time is spoken for.
  if (options_.speculation == Speculation::off || passing() ||
      static_cast<int32_t>(plan.size()) >= draft_budget_.max_rows() ||
      std::any_of(plan.begin(), plan.end(),
                  [](const ScheduledChunk& chunk) { return !chunk.sequence->decoding(); })) {
    return plan;
  }
  const auto sequences = static_cast<int32_t>(plan.size());
  shares_.clear();
  jobs_.clear();
  for (const ScheduledChunk& chunk : plan) {
    shares_.push_back(draft_share(active_of(*chunk.sequence), sequences));
  }
  draft_budget_.share(shares_);
  for (size_t i = 0; i < plan.size(); ++i) {
    ActiveRequest& active = active_of(*plan[i].sequence);
    Sequence& s = active.sequence;
    const DraftShare& share = shares_[i];
    if (!share.by_model) {
      const auto count = static_cast<size_t>(share.count);
      s.drafted = active.lookup.propose(s.tokens, {s.draft.data(), count});
    } else if (share.count == 0) {
      active.by_model.refused(s.length());
    } else {
      jobs_.push_back(
          {&s, &active.by_model, &active.request.sampling, active.stop_tokens, share.count});
    }
  }
  if (!jobs_.empty()) draft_by_model(draft_budget_.step_ms(sequences));
  return scheduler_.plan_drafts();
}

}  // namespace wok
