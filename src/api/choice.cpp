#include "api/choice.h"

#include "api/json_write.h"

namespace wok {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
    case FinishReason::kNone:
      break;
  }
  return nullptr;
}

Choice::Choice(int index, size_t prompt, const Tokenizer& tokenizer, const GenerateParams& params,
               const std::string& echo)
    : tokenizer_(tokenizer),
      params_(params),
      index_(index),
      prompt_(prompt),
      detokenizer_(tokenizer, params.stop, params.show_special, params.include_stop),
      text_(echo) {
  text_.reserve(text_.size() + 256);
  logprobs_.characters = count_characters(echo);
}

bool Choice::feed(const Event& event, const ReplyFormat& format) {
  if (finished()) return true;
  generated_tokens_ = event.generated_tokens;
  cached_tokens_ = event.cached_tokens;
  if (event.token >= 0) {
    if (params_.return_token_ids) {
      if (!token_ids_.empty()) token_ids_ += ',';
      append_json_int(token_ids_, event.token);
    }
    // A stop token ends the text and is no part of it, unless the client wants to see it.
    const bool is_text = event.finish != FinishReason::kStop || params_.include_stop;
    if (is_text) {
      // Every token's log-probabilities go out, also while its text is held back.
      if (params_.sampling.top_logprobs >= 0) format.append_logprob(tokenizer_, event, logprobs_);
      if (detokenizer_.feed(event.token, text_)) finish_ = FinishReason::kStop;
    }
  }
  if (!finished() && event.finish != FinishReason::kNone) {
    detokenizer_.finish(text_);
    // What was held back may complete a stop string when its last character is given up.
    const bool stopped = detokenizer_.stopped() && event.finish == FinishReason::kLength;
    finish_ = stopped ? FinishReason::kStop : event.finish;
  }
  return finished();
}

ChoicePart Choice::part(const std::vector<int32_t>& prompt_ids) const {
  ChoicePart part;
  part.index = index_;
  part.first = first_;
  part.text = text_;
  if (params_.sampling.top_logprobs >= 0) part.logprobs = &logprobs_;
  if (params_.return_token_ids) {
    part.token_ids = &token_ids_;
    if (first_) part.prompt_ids = &prompt_ids;
  }
  part.finish_reason = finish_reason_name(finish_);
  return part;
}

void Choice::sent() {
  first_ = false;
  text_.clear();
  logprobs_.clear();
  token_ids_.clear();
}

}  // namespace wok
