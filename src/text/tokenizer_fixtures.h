// Small vocabularies for tests: complete enough to encode any text, small enough to reason about.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace wok::test {

// GPT-2's alphabet: how byte-level vocabularies spell a byte.
inline std::string spell_byte(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
  };
  int code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

inline std::string spell(std::string_view text) {
  std::string out;
  for (const char c : text) out += spell_byte(static_cast<unsigned char>(c));
  return out;
}

inline int32_t add_token(TokenizerData& data, std::string piece,
                         TokenKind kind = TokenKind::kNormal, float score = 0) {
  data.tokens.push_back(std::move(piece));
  data.kinds.push_back(kind);
  if (data.model == "llama") data.scores.push_back(score);
  return static_cast<int32_t>(data.tokens.size()) - 1;
}

// Ids 0..255 are the bytes; 256 <s>, 257 <|im_start|>, 258 <|im_end|>, 259 the user-defined
// "<think>"; then the merges: h+e, l+l, he+ll, hell+o, Ġ+w, Ġ+Ġ.
inline TokenizerData byte_level_data(std::string pre = "gpt-2") {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) add_token(data, spell_byte(byte));
  data.bos_id = add_token(data, "<s>", TokenKind::kControl);
  add_token(data, "<|im_start|>", TokenKind::kControl);
  data.eos_id = add_token(data, "<|im_end|>", TokenKind::kControl);
  add_token(data, "<think>", TokenKind::kUserDefined);
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"}, {" ", " "}};
  for (const auto& [left, right] : merges) {
    data.merges.push_back(spell(left) + " " + spell(right));
    add_token(data, spell(left + right));
  }
  return data;
}

// 0 <unk>, 1 <s>, 2 </s>, 3 <end_of_turn>, 4..259 the bytes, 260 user-defined "\n\n", then letters
// and pieces with scores.
inline TokenizerData sentence_piece_data() {
  TokenizerData data;
  data.model = "llama";
  data.unk_id = add_token(data, "<unk>", TokenKind::kUnknown);
  data.bos_id = add_token(data, "<s>", TokenKind::kControl);
  data.eos_id = add_token(data, "</s>", TokenKind::kControl);
  add_token(data, "<end_of_turn>", TokenKind::kControl);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    add_token(data, std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", TokenKind::kByte);
  }
  add_token(data, "\n\n", TokenKind::kUserDefined, -1000);
  float score = -1;
  for (const char* piece : {"he", "ll", "hell", "hello", "▁hello", "▁w", "▁▁", "▁", "h", "e", "l",
                            "o", "w", "r", "d", "é"}) {
    add_token(data, piece, TokenKind::kNormal, score--);
  }
  data.add_bos = true;
  return data;
}

}  // namespace wok::test
