// How many prefill tokens a step may carry beside running decodes, so that their inter-token
// latency stays near its target: learns what a decode step and a prefill token cost on this machine
// now.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wok {

class StepBudget {
 public:
  // target_ms 0: 1.4 times the undisturbed decode step, which leaves room for a machine's own
  // jitter below three times.
  StepBudget(int32_t max_tokens, double target_ms) : max_(max_tokens), target_ms_(target_ms) {}

  int32_t prefill_tokens(int32_t decodes) const {
    if (decodes == 0 || decode_ms_ <= 0 || prefill_token_ms_ <= 0)
      return decodes == 0 ? max_ : kMin;
    const double target = target_ms_ > 0 ? target_ms_ : kAutomaticFactor * decode_ms_;
    const double room = (target - decode_ms_) / prefill_token_ms_;
    return std::clamp(static_cast<int32_t>(std::min(room, 1e6)), kMin, max_);
  }

  void record(int32_t decodes, int32_t prefill, double step_ms) {
    if (prefill == 0 && decodes > 0) {
      blend(decode_ms_, step_ms);
    } else if (prefill > 0) {
      const double decode_part = decodes > 0 ? decode_ms_ : 0;
      const double each = (step_ms - decode_part) / prefill;
      blend(prefill_token_ms_, std::max(each, step_ms * kLeastShare / prefill));
    }
  }

 private:
  static constexpr int32_t kMin = 2;  // prefill always gets on
  static constexpr double kAutomaticFactor = 1.4;
  static constexpr double kLeastShare = 0.1;
  static constexpr double kNew = 0.2;  // weight of the newest step

  static void blend(double& average, double value) {
    average = average <= 0 ? value : average + kNew * (value - average);
  }

  int32_t max_;
  double target_ms_;
  double decode_ms_ = 0, prefill_token_ms_ = 0;
};

}  // namespace wok
