// Cutting a byte stream into whole UTF-8 characters.
#pragma once

#include <string>
#include <string_view>

namespace wok {

// Moves the whole characters at the front of `bytes` to the end of `out`; what is no UTF-8 becomes
// U+FFFD (one for each maximal run that could have begun a character, as Unicode chapter 3.9
// recommends). An unfinished character at the end, at most 3 bytes, stays in `bytes`.
void take_whole_characters(std::string& bytes, std::string& out);

// The offset of the first byte that is no UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace wok
