// What goes into an engine and what comes out. No strings, no JSON.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/params.h"

namespace wok {

using RequestId = uint64_t;

enum class FinishReason : uint8_t {
  kNone,
  kStop,    // a stop token (EOS, end of turn, stop_token_ids)
  kLength,  // max_new_tokens, or the context window is full
  kAbort,   // abort() was called
  kError,   // the engine could not go on (its message is in the log)
};

struct Event {
  struct Logprob {
    int32_t token = -1;
    float logprob = 0;
  };
  RequestId request = 0;
  int32_t token = -1;  // -1: no token comes with this event
  FinishReason finish = FinishReason::kNone;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;     // of the prompt, read from the prefix cache
  int32_t generated_tokens = 0;  // up to and with this event
  float logprob = 0;             // of `token`, when top_logprobs >= 0
  int32_t top_count = 0;         // entries used in `top`, best first
  std::array<Logprob, kMaxTopLogprobs> top{};
  int64_t queue_ns = 0, prefill_ns = 0, decode_ns = 0;  // set with the finishing event
};

// Receives the events of one request, in order, the last one with finish != kNone. Called on the
// engine's output thread, never on the step thread: may do text work, must not block on a socket.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const Event& event) noexcept = 0;
};

struct Request {
  std::vector<int32_t> prompt;  // not empty
  SamplingParams sampling;
  int32_t max_new_tokens = 0;           // >= 1; prompt + max_new_tokens <= context window
  std::vector<int32_t> stop_token_ids;  // besides the model's end ids
  int32_t priority = 0;                 // lower runs earlier
  uint64_t prefix_namespace = 0;        // tenants with different numbers never share a prefix
  std::shared_ptr<EventSink> sink;
};

}  // namespace wok
