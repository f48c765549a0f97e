#include "text/utf8.h"

#include <cstdint>

namespace wok {

namespace {

struct Character {
  size_t size;    // bytes that belong together
  bool valid;     // they are a character
  bool finished;  // false: the text ends inside what may still become a character
};

// Table 3-7 of the Unicode standard: which second bytes may follow a lead byte.
Character first_character(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {1, true, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, true};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, false, false};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xBF)) return {i, false, true};
  }
  return {size, true, true};
}

}  // namespace

void take_whole_characters(std::string& bytes, std::string& out) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Character character = first_character(rest);
    if (!character.finished) break;
    if (character.valid) {
      out += rest.substr(0, character.size);
    } else {
      out += kReplacementCharacter;
    }
    rest.remove_prefix(character.size);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

size_t find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Character character = first_character(text.substr(at));
    if (!character.valid) return at;
    at += character.size;
  }
  return std::string_view::npos;
}

}  // namespace wok
