// Streams tokens into text: never splits a UTF-8 character, never leaks a stop string.
// One object a choice; not thread-safe; after create-time reserve, feed() allocates only when the
// held text outgrows what was reserved.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace wok {

class Detokenizer {
 public:
  // stops: texts that end the output; none of them may be empty. They may straddle tokens: text
  // that could be the beginning of a stop is held back until it cannot be.
  // include_stop: leave the stop string in the output (vLLM's include_stop_str_in_output).
  // skip_leading_space: drop one leading space (SPM, when the prompt was empty).
  Detokenizer(const Tokenizer& tokenizer, std::vector<std::string> stops, bool show_special = false,
              bool include_stop = false);

  // Appends to `out` the text that became certain with this token. True: a stop string is complete
  // (nothing of it is in out unless include_stop); further tokens are ignored.
  bool feed(int32_t token, std::string& out);

  // End of generation: appends what was held back (an unfinished UTF-8 character becomes U+FFFD).
  void finish(std::string& out);

  bool stopped() const { return stopped_; }
  // Which of the stops ended the output; valid when stopped().
  const std::string& stop() const { return stops_[stop_index_]; }

 private:
  bool release(std::string& out);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  bool show_special_;
  bool include_stop_;
  bool stopped_ = false;
  size_t stop_index_ = 0;
  std::string bytes_;  // unfinished UTF-8 character, at most 3 bytes (plus the new piece)
  std::string held_;   // whole characters that may be the start of a stop string
};

}  // namespace wok
