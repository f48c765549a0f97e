// text_completion: chunks and whole replies have the same shape.
#pragma once

#include "api/reply_format.h"

namespace wok {

class CompletionFormat : public ReplyFormat {
 public:
  explicit CompletionFormat(const ReplyHead& head);
  void append_logprob(const Tokenizer& tokenizer, const Event& event,
                      LogprobText& out) const override;
  void append_chunk(const ChoicePart& part, std::string& out) const override;
  void append_usage_chunk(const Usage& usage, std::string& out) const override;
  std::string whole(const std::vector<ChoicePart>& choices, const Usage& usage) const override;

 private:
  std::string head_;
  const char* chunk_end_;
};

}  // namespace wok
