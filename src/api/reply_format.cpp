#include "api/reply_format.h"

#include "api/json_write.h"

namespace wok {

void append_usage(const Usage& usage, std::string& out) {
  out += R"("usage":{"prompt_tokens":)";
  append_json_int(out, usage.prompt_tokens);
  out += R"(,"completion_tokens":)";
  append_json_int(out, usage.completion_tokens);
  out += R"(,"total_tokens":)";
  append_json_int(out, usage.prompt_tokens + usage.completion_tokens);
  out += R"(,"prompt_tokens_details":{"cached_tokens":)";
  append_json_int(out, usage.cached_tokens);
  out += "}}";
}

void append_token_ids(const std::vector<int32_t>& ids, std::string& out) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    append_json_int(out, ids[i]);
  }
  out += ']';
}

std::string token_text(std::string_view piece) {
  if (is_utf8(piece)) return std::string(piece);
  std::string out = "bytes:";
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

void append_choice_end(const ChoicePart& part, std::string& out) {
  if (part.finish_reason == nullptr) {
    out += R"(,"finish_reason":null)";
  } else {
    out += R"(,"finish_reason":")";
    out += part.finish_reason;
    out += '"';
  }
  if (part.token_ids != nullptr) {
    out += R"(,"token_ids":[)";
    out += *part.token_ids;
    out += ']';
  }
  if (part.prompt_ids != nullptr) {
    out += R"(,"prompt_token_ids":)";
    append_token_ids(*part.prompt_ids, out);
  }
  out += '}';
}

}  // namespace wok
