// One choice of a generation: its detokenizer and what waits to be sent.
#pragma once

#include <cstdint>
#include <string>

#include "api/generate_params.h"
#include "api/metrics.h"
#include "api/reply_format.h"
#include "engine/request.h"
#include "text/detokenizer.h"

namespace wok {

class Choice {
 public:
  Choice(int index, size_t prompt, const Tokenizer& tokenizer, const GenerateParams& params,
         const std::string& echo);

  // Takes an event's token and finish. True: the choice is finished (by the engine or by a stop
  // string); further events change nothing but statistics.
  bool feed(const Event& event, const ReplyFormat& format);

  // Something to send: new text, or the end.
  bool ready() const { return !text_.empty() || finished(); }
  // What waits, or in a whole reply everything. Views into this object.
  ChoicePart part(const std::vector<int32_t>& prompt_ids) const;
  void sent();

  bool finished() const { return finish_ != FinishReason::kNone; }
  // The detokenizer met a stop string, so the engine must be told to end.
  bool stopped_by_text() const { return detokenizer_.stopped(); }
  FinishReason finish() const { return finish_; }
  int index() const { return index_; }
  size_t prompt() const { return prompt_; }
  int32_t generated_tokens() const { return generated_tokens_; }
  int32_t cached_tokens() const { return cached_tokens_; }

  int64_t last_token_ns = 0;  // 0: none yet

 private:
  const Tokenizer& tokenizer_;
  const GenerateParams& params_;
  const int index_;
  const size_t prompt_;  // which of the request's prompts
  Detokenizer detokenizer_;
  std::string text_;
  LogprobText logprobs_;
  std::string token_ids_;
  bool first_ = true;
  FinishReason finish_ = FinishReason::kNone;
  int32_t generated_tokens_ = 0, cached_tokens_ = 0;
};

const char* finish_reason_name(FinishReason reason);

}  // namespace wok
