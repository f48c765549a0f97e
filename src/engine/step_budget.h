// How many prefill tokens a step may carry beside running decodes: as many as keep their
// inter-token latency near its target. Learns what a prefill token costs on this machine now.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wok {

class StepBudget {
 public:
  // target_ms: of a step with decodes; 0: follows from who waits (docs/adr/0007).
  StepBudget(int32_t max_tokens, double target_ms) : max_(max_tokens), target_ms_(target_ms) {}

  // decode_ms: what a step of these decodes alone takes, 0: unknown. prompts: requests that wait
  // for their first token.
  int32_t prefill_tokens(int32_t decodes, double decode_ms, int32_t prompts) const {
    if (decodes == 0) return max_;
    if (decode_ms <= 0 || prefill_token_ms_ <= 0) return kMin;
    const double target = target_ms_ > 0 ? target_ms_ : automatic_ms(decodes, decode_ms, prompts);
    const double room = (target - decode_ms) / prefill_token_ms_;
    return std::clamp(static_cast<int32_t>(std::min(room, 1e6)), kMin, max_);
  }

  // A step took step_ms, of which its decodes alone would have taken decode_ms.
  void record(double decode_ms, int32_t prefill, double step_ms) {
    if (prefill == 0) return;
    const double each = std::max(step_ms - decode_ms, step_ms * kLeastShare) / prefill;
    prefill_token_ms_ =
        prefill_token_ms_ <= 0 ? each : prefill_token_ms_ + kNew * (each - prefill_token_ms_);
  }

 private:
  // The more wait beside few streams, the more of a step is theirs, so that a few streams cannot
  // keep many waiting, while a stream stays fluent to read. A lone prompt beside many streams gets
  // kLeast, which leaves room for a machine's own jitter.
  static double automatic_ms(int32_t decodes, double decode_ms, int32_t prompts) {
    const double least = (1 + kLeast) * decode_ms;
    const double each = static_cast<double>(prompts) / decodes;
    return std::max(least, std::min((1 + kShare * each * each) * decode_ms, kFluentMs));
  }

  static constexpr int32_t kMin = 2;  // prefill always gets on
  static constexpr double kLeast = 0.4;
  static constexpr double kFluentMs = 45;
  static constexpr double kShare = 4;  // decode steps for prompts when as many wait as stream
  static constexpr double kLeastShare = 0.1;
  static constexpr double kNew = 0.2;  // weight of the newest step

  int32_t max_;
  double target_ms_;
  double prefill_token_ms_ = 0;
};

}  // namespace wok
