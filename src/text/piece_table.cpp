#include "text/piece_table.h"

#include <array>

namespace wok {

namespace {

// GPT-2's alphabet read backwards: code point -> byte, -1 where the alphabet has none. The bytes
// that Latin-1 prints stand for themselves; the others follow in order from U+0100.
constexpr size_t kAlphabetEnd = 0x144;

std::array<int16_t, kAlphabetEnd> make_alphabet() {
  std::array<int16_t, kAlphabetEnd> bytes;
  bytes.fill(-1);
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    bytes[printable ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

void append_byte_level(std::string_view token, std::string& out) {
  static const std::array<int16_t, kAlphabetEnd> kAlphabet = make_alphabet();
  for (size_t at = 0; at < token.size();) {
    const auto lead = static_cast<uint8_t>(token[at]);
    size_t code = lead;
    size_t size = 1;
    if (lead >= 0xC0 && lead < 0xE0 && at + 1 < token.size()) {
      code = (lead & 0x1Fu) << 6 | (static_cast<uint8_t>(token[at + 1]) & 0x3Fu);
      size = 2;
    }
    const bool spells_byte = (size == 2 || lead < 0x80) && code < kAlphabetEnd;
    if (spells_byte && kAlphabet[code] >= 0) {
      out += static_cast<char>(kAlphabet[code]);
    } else {
      out += token.substr(at, size);  // not in the alphabet: some files have such tokens as text
    }
    at += size;
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "<0x0A>" -> 10, anything else -> -1.
int spelled_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void append_sentence_piece(std::string_view token, TokenKind kind, std::string& out) {
  if (kind == TokenKind::kByte) {
    if (const int byte = spelled_byte(token); byte >= 0) {
      out += static_cast<char>(byte);
      return;
    }
  }
  constexpr std::string_view kSpace = "\xE2\x96\x81";  // ▁
  for (size_t at = 0; at < token.size();) {
    const size_t found = token.find(kSpace, at);
    out += token.substr(at, found - at);
    if (found == std::string_view::npos) break;
    out += ' ';
    at = found + kSpace.size();
  }
}

bool is_special(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

}  // namespace

PieceTable::PieceTable(const std::vector<std::string>& tokens, const std::vector<TokenKind>& kinds,
                       bool byte_level)
    : kinds_(kinds) {
  size_t total = 0;
  for (const std::string& token : tokens) total += token.size();
  bytes_.reserve(total);
  offsets_.reserve(tokens.size() + 1);
  offsets_.push_back(0);
  for (size_t id = 0; id < tokens.size(); ++id) {
    const TokenKind kind = kinds_[id];
    if (is_special(kind) || (byte_level && kind == TokenKind::kUserDefined)) {
      bytes_ += tokens[id];
    } else if (byte_level) {
      append_byte_level(tokens[id], bytes_);
    } else {
      append_sentence_piece(tokens[id], kind, bytes_);
    }
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

std::string_view PieceTable::piece(int32_t id, bool show_special) const {
  if (!has(id)) return {};
  const auto index = static_cast<size_t>(id);
  if (!show_special && is_special(kinds_[index])) return {};
  return std::string_view(bytes_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
}

bool PieceTable::is_control(int32_t id) const {
  return has(id) && kinds_[static_cast<size_t>(id)] == TokenKind::kControl;
}

}  // namespace wok
