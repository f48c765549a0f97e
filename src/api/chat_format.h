// chat.completion and chat.completion.chunk.
#pragma once

#include "api/reply_format.h"

namespace wok {

class ChatFormat : public ReplyFormat {
 public:
  explicit ChatFormat(const ReplyHead& head);
  void append_logprob(const Tokenizer& tokenizer, const Event& event,
                      LogprobText& out) const override;
  void append_chunk(const ChoicePart& part, std::string& out) const override;
  void append_usage_chunk(const Usage& usage, std::string& out) const override;
  std::string whole(const std::vector<ChoicePart>& choices, const Usage& usage) const override;

 private:
  void append_tail(const ChoicePart& part, std::string& out) const;

  std::string whole_head_, chunk_head_;
  const char* chunk_end_;
};

}  // namespace wok
