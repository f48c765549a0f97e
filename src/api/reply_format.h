// How a generation's output looks on the wire: one implementation a dialect. Chunks and whole
// replies are written as text from parts that were built once a request; no JSON trees here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "text/tokenizer.h"

namespace wok {

// Log-probabilities of some tokens, already JSON, elements separated by commas. Chat uses only
// `entries`; completions have four parallel arrays.
struct LogprobText {
  std::string entries;
  std::string tokens, token_logprobs, top_logprobs, text_offset;
  int64_t characters = 0;  // of the choice's text before the next token, for text_offset

  void clear() {  // keeps `characters`
    for (std::string* text : {&entries, &tokens, &token_logprobs, &top_logprobs, &text_offset}) {
      text->clear();
    }
  }
};

// What a chunk, or a whole reply, says of one choice.
struct ChoicePart {
  int index = 0;
  bool first = true;  // the choice's first chunk
  std::string_view text;
  const LogprobText* logprobs = nullptr;             // null: not asked for
  const std::string* token_ids = nullptr;            // "1,2,3"; null: not asked for
  const std::vector<int32_t>* prompt_ids = nullptr;  // null: not asked for, or not the first chunk
  const char* finish_reason = nullptr;               // null: goes on
};

struct Usage {
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

struct ReplyHead {
  std::string id;  // without the dialect's prefix
  std::string model;
  std::string fingerprint;
  int64_t created_unix_s = 0;
  bool usage_in_chunks = false;  // "usage":null in every chunk but the last
};

class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;

  // One token's log-probabilities (event.logprob, event.top) behind those already in `out`.
  virtual void append_logprob(const Tokenizer& tokenizer, const Event& event,
                              LogprobText& out) const = 0;
  // One server-sent event.
  virtual void append_chunk(const ChoicePart& part, std::string& out) const = 0;
  // The last one, with "choices": [].
  virtual void append_usage_chunk(const Usage& usage, std::string& out) const = 0;
  virtual std::string whole(const std::vector<ChoicePart>& choices, const Usage& usage) const = 0;
};

// Shared by the formats.
void append_usage(const Usage& usage, std::string& out);
// A choice's finish reason and token ids, and the brace that ends it.
void append_choice_end(const ChoicePart& part, std::string& out);
void append_token_ids(const std::vector<int32_t>& ids, std::string& out);
// A token as text: "bytes:\xe2\x80" where it is only a part of a character, as OpenAI writes it.
std::string token_text(std::string_view piece);

}  // namespace wok
