#include "api/chat_format.h"

#include "api/json_write.h"

namespace wok {
namespace {

std::string head_text(const ReplyHead& head, const char* object) {
  std::string out = R"({"id":)";
  append_json_string(out, "chatcmpl-" + head.id);
  out += R"(,"object":")";
  out += object;
  out += R"(","created":)";
  append_json_int(out, head.created_unix_s);
  out += R"(,"model":)";
  append_json_string(out, head.model);
  out += R"(,"system_fingerprint":)";
  append_json_string(out, head.fingerprint);
  out += R"(,"choices":[)";
  return out;
}

void append_entry(const Tokenizer& tokenizer, int32_t token, float logprob, std::string& out) {
  const std::string_view piece = tokenizer.piece(token, true);
  out += R"({"token":)";
  append_json_string(out, piece);
  out += R"(,"logprob":)";
  append_json_logprob(out, logprob);
  out += R"(,"bytes":)";
  append_json_bytes(out, piece);
}

}  // namespace

ChatFormat::ChatFormat(const ReplyHead& head)
    : whole_head_(head_text(head, "chat.completion")),
      chunk_head_("data: " + head_text(head, "chat.completion.chunk")),
      chunk_end_(head.usage_in_chunks ? "],\"usage\":null}\n\n" : "]}\n\n") {}

void ChatFormat::append_logprob(const Tokenizer& tokenizer, const Event& event,
                                LogprobText& out) const {
  std::string& text = out.entries;
  if (!text.empty()) text += ',';
  append_entry(tokenizer, event.token, event.logprob, text);
  text += R"(,"top_logprobs":[)";
  for (int i = 0; i < event.top_count; ++i) {
    if (i > 0) text += ',';
    append_entry(tokenizer, event.top[i].token, event.top[i].logprob, text);
    text += '}';
  }
  text += "]}";
}

// What chunks and whole replies have in common behind the text.
void ChatFormat::append_tail(const ChoicePart& part, std::string& out) const {
  if (part.logprobs != nullptr) {
    out += R"(,"logprobs":{"content":[)";
    out += part.logprobs->entries;
    out += R"(],"refusal":null})";
  } else {
    out += R"(,"logprobs":null)";
  }
  append_choice_end(part, out);
}

void ChatFormat::append_chunk(const ChoicePart& part, std::string& out) const {
  out += chunk_head_;
  out += R"({"index":)";
  append_json_int(out, part.index);
  out += R"(,"delta":{)";
  if (part.first) out += R"("role":"assistant",)";
  if (part.first || !part.text.empty()) {
    out += R"("content":)";
    append_json_string(out, part.text);
  }
  out += '}';
  append_tail(part, out);
  out += chunk_end_;
}

void ChatFormat::append_usage_chunk(const Usage& usage, std::string& out) const {
  out += chunk_head_;
  out += "],";
  append_usage(usage, out);
  out += "}\n\n";
}

std::string ChatFormat::whole(const std::vector<ChoicePart>& choices, const Usage& usage) const {
  std::string out = whole_head_;
  for (const ChoicePart& part : choices) {
    if (&part != &choices.front()) out += ',';
    out += R"({"index":)";
    append_json_int(out, part.index);
    out += R"(,"message":{"role":"assistant","content":)";
    append_json_string(out, part.text);
    out += R"(,"refusal":null})";
    append_tail(part, out);
  }
  out += "],";
  append_usage(usage, out);
  out += '}';
  return out;
}

}  // namespace wok
