// Prometheus metrics: wok_* names, and for dashboards made for vLLM the same under vllm:*.
// Recording is lock-free or takes a histogram's short lock; reading changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/request.h"

namespace wok {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Each is one observation, in nanoseconds.
  void first_token(int64_t since_arrival_ns);
  void next_token(int64_t since_last_ns);
  void finished(FinishReason reason, int64_t since_arrival_ns);
  void engine_times(const Event& last);  // queue, prefill, decode

  void replied(int status);  // every HTTP reply

  // Prometheus text format 0.0.4. `stats` may be null: no engine yet.
  std::string serialize(const EngineStats* stats, const std::string& model,
                        const std::string& version) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wok
