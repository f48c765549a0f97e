// Speculation's part of a step: which guesses are computed with it.
#include <algorithm>

#include "engine/engine_impl.h"

namespace wok {

std::span<const ScheduledChunk> EngineImpl::add_drafts(std::span<const ScheduledChunk> plan) {
  // With so many sequences a step has rows enough, and beside a prefill its time is spoken for.
  if (options_.speculation == Speculation::off || passing() ||
      static_cast<int32_t>(plan.size()) >= draft_budget_.max_rows() ||
      std::any_of(plan.begin(), plan.end(),
                  [](const ScheduledChunk& chunk) { return !chunk.sequence->decoding(); })) {
    return plan;
  }
  shares_.clear();
  for (const ScheduledChunk& chunk : plan) {
    ActiveRequest& active = *active_.find(chunk.sequence->id)->second;
    const Sequence& s = *chunk.sequence;
    if (!active.lookup.started()) active.lookup.start(s.tokens, s.max_tokens);
    active.lookup.follow(s.tokens);
    const int32_t left = s.max_tokens - s.length() - 1;
    shares_.push_back(
        {.lookup = &active.lookup,
         .most = active.lookup.has_proposal() ? std::min(left, options_.draft_tokens) : 0});
  }
  draft_budget_.share(shares_);
  for (size_t i = 0; i < plan.size(); ++i) {
    Sequence& s = *plan[i].sequence;
    const auto count = static_cast<size_t>(shares_[i].count);
    s.drafted = shares_[i].lookup->propose(s.tokens, {s.draft.data(), count});
  }
  return scheduler_.plan_drafts();
}

}  // namespace wok
