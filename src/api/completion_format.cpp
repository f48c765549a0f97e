#include "api/completion_format.h"

#include <algorithm>

#include "api/json_write.h"

namespace wok {
namespace {

void append_choice(const ChoicePart& part, std::string& out) {
  out += R"({"index":)";
  append_json_int(out, part.index);
  out += R"(,"text":)";
  append_json_string(out, part.text);
  if (part.logprobs != nullptr) {
    out += R"(,"logprobs":{"tokens":[)";
    out += part.logprobs->tokens;
    out += R"(],"token_logprobs":[)";
    out += part.logprobs->token_logprobs;
    out += R"(],"top_logprobs":[)";
    out += part.logprobs->top_logprobs;
    out += R"(],"text_offset":[)";
    out += part.logprobs->text_offset;
    out += "]}";
  } else {
    out += R"(,"logprobs":null)";
  }
  append_choice_end(part, out);
}

}  // namespace

CompletionFormat::CompletionFormat(const ReplyHead& head)
    : chunk_end_(head.usage_in_chunks ? "],\"usage\":null}\n\n" : "]}\n\n") {
  head_ = R"({"id":)";
  append_json_string(head_, "cmpl-" + head.id);
  head_ += R"(,"object":"text_completion","created":)";
  append_json_int(head_, head.created_unix_s);
  head_ += R"(,"model":)";
  append_json_string(head_, head.model);
  head_ += R"(,"system_fingerprint":)";
  append_json_string(head_, head.fingerprint);
  head_ += R"(,"choices":[)";
}

void CompletionFormat::append_logprob(const Tokenizer& tokenizer, const Event& event,
                                      LogprobText& out) const {
  const std::string_view piece = tokenizer.piece(event.token, true);
  const std::string text = token_text(piece);
  if (!out.tokens.empty()) {
    for (std::string* list :
         {&out.tokens, &out.token_logprobs, &out.top_logprobs, &out.text_offset}) {
      *list += ',';
    }
  }
  append_json_string(out.tokens, text);
  append_json_logprob(out.token_logprobs, event.logprob);
  append_json_int(out.text_offset, out.characters);
  out.characters += count_characters(piece);

  // OpenAI: the sampled token is always among them, so there may be one more than asked for.
  out.top_logprobs += '{';
  const auto* end = event.top.begin() + event.top_count;
  for (const auto* entry = event.top.begin(); entry != end; ++entry) {
    append_json_string(out.top_logprobs, token_text(tokenizer.piece(entry->token, true)));
    out.top_logprobs += ':';
    append_json_logprob(out.top_logprobs, entry->logprob);
    out.top_logprobs += ',';
  }
  const bool listed = std::any_of(event.top.begin(), end, [&](const Event::Logprob& entry) {
    return entry.token == event.token;
  });
  if (listed) {
    out.top_logprobs.back() = '}';
  } else {
    append_json_string(out.top_logprobs, text);
    out.top_logprobs += ':';
    append_json_logprob(out.top_logprobs, event.logprob);
    out.top_logprobs += '}';
  }
}

void CompletionFormat::append_chunk(const ChoicePart& part, std::string& out) const {
  out += "data: ";
  out += head_;
  append_choice(part, out);
  out += chunk_end_;
}

void CompletionFormat::append_usage_chunk(const Usage& usage, std::string& out) const {
  out += "data: ";
  out += head_;
  out += "],";
  append_usage(usage, out);
  out += "}\n\n";
}

std::string CompletionFormat::whole(const std::vector<ChoicePart>& choices,
                                    const Usage& usage) const {
  std::string out = head_;
  for (const ChoicePart& part : choices) {
    if (&part != &choices.front()) out += ',';
    append_choice(part, out);
  }
  out += "],";
  append_usage(usage, out);
  out += '}';
  return out;
}

}  // namespace wok
