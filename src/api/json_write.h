// Writing JSON by hand where a tree of objects would cost too much: once a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wok {

// Appends `text` quoted and escaped. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
void append_json_int(std::string& out, int64_t value);
// Shortest decimal that reads back the same. Log-probabilities may be -inf, which JSON cannot say:
// anything below -9999 is written as -9999.0, as OpenAI does.
void append_json_logprob(std::string& out, float value);
// [104,105]
void append_json_bytes(std::string& out, std::string_view bytes);

// Length of the UTF-8 character `text` begins with; 0 when it does not begin with a valid one.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);
// Characters, not bytes, of a text that is UTF-8 or a part of it.
int64_t count_characters(std::string_view text);

}  // namespace wok
