// What each token writes: one block of bytes for all of them, decoded once when a model loads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace wok {

class PieceTable {
 public:
  // byte_level: tokens are spelled in GPT-2's alphabet, a character a byte; otherwise as SPM does
  // (▁ for a space, <0x0A> for a byte). kinds: one a token.
  PieceTable(const std::vector<std::string>& tokens, const std::vector<TokenKind>& kinds,
             bool byte_level);

  // An id out of range gives "", and so does a token that is not text unless show_special.
  std::string_view piece(int32_t id, bool show_special) const;
  bool is_control(int32_t id) const;
  int32_t size() const { return static_cast<int32_t>(kinds_.size()); }

 private:
  bool has(int32_t id) const { return id >= 0 && id < size(); }

  std::string bytes_;
  std::vector<uint32_t> offsets_;  // of size() + 1
  std::vector<TokenKind> kinds_;
};

}  // namespace wok
