// How many prefill tokens a step may carry beside running decodes: as many as keep their
// inter-token latency near its target. Learns what a prefill token costs on this machine now.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/scheduler.h"

namespace wok {

struct PrefillShare {
  int32_t tokens = 0;  // to plan
  int32_t room = 0;    // that fit a step; more than these become a pass (docs/adr/0012)
};

class StepBudget {
 public:
  // Fewer are not worth a pass over weights and keys.
  static constexpr int32_t kPassTokens = 32;

  // target_ms: of a step with decodes; 0: follows from who waits (docs/adr/0007).
  StepBudget(int32_t max_tokens, double target_ms)
      : max_(max_tokens), target_ms_(std::min(target_ms, kMostMs)) {}

  // decode_ms: what a step of these decodes alone takes, 0: unknown.
  double target_ms(int32_t decodes, double decode_ms, const WaitingPrompts& prompts) const {
    return target_ms_ > 0 || decodes == 0 ? target_ms_ : automatic_ms(decodes, decode_ms, prompts);
  }

  PrefillShare share(int32_t decodes, double decode_ms, double target_ms) const {
    if (decodes == 0) {
      if (prefill_token_ms_ <= 0) return {max_, max_};
      const double fits = std::min<double>(kLongestMs / prefill_token_ms_, max_);
      const int32_t alone = std::min(std::max(static_cast<int32_t>(fits), kLeastAlone), max_);
      return {alone, alone};
    }
    const bool known = decode_ms > 0 && prefill_token_ms_ > 0;
    const double room = known ? std::max(target_ms - decode_ms, 0.0) / prefill_token_ms_ : 0;
    const auto fits = static_cast<int32_t>(std::min<double>(room, max_));
    return {std::min(std::max(fits, kPassTokens), max_), fits};
  }

  // A step took step_ms, of which its decodes alone would have taken decode_ms. A pass has none.
  void record(double decode_ms, int32_t prefill, double step_ms) {
    if (prefill == 0) return;
    const double each = std::max(step_ms - decode_ms, step_ms * kLeastShare) / prefill;
    prefill_token_ms_ =
        prefill_token_ms_ <= 0 ? each : prefill_token_ms_ + kNew * (each - prefill_token_ms_);
  }

 private:
  // Each lengthy prompt takes a part of a decode step, which leaves room for a machine's own
  // jitter. The more wait beside few streams, the more of a step is theirs, so that a few streams
  // cannot keep many waiting. All that while a stream stays fluent to read.
  static double automatic_ms(int32_t decodes, double decode_ms, const WaitingPrompts& prompts) {
    const double ratio = prompts.soon / decodes;
    const double share = std::max(
        {kEach * prompts.lengthy, kBrief * prompts.brief / decodes, ratio * ratio * ratio});
    return std::max((1 + kEach) * decode_ms, std::min((1 + share) * decode_ms, kFluentMs));
  }

  static constexpr double kEach = 0.3;  // of a decode step, for a lengthy prompt
  static constexpr double kBrief = 4;   // of a decode step and its streams, for a brief prompt
  static constexpr double kFluentMs = 35;
  // Of prefill alone: who arrives meanwhile waits for the step's end.
  static constexpr double kLongestMs = 400;
  static constexpr int32_t kLeastAlone = 64;
  static constexpr double kMostMs = 1e9;  // days are as good as forever
  static constexpr double kLeastShare = 0.1;
  static constexpr double kNew = 0.2;  // weight of the newest step

  int32_t max_;
  double target_ms_;
  double prefill_token_ms_ = 0;
};

}  // namespace wok
