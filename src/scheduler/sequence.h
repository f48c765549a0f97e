// One sequence as scheduler and engine share it: its tokens, its pages, how far it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/page_cache.h"

namespace wok {

constexpr int32_t kMaxDraftTokens = 15;  // with the token before them a tile of 16 rows

enum class SequenceState : uint8_t { kWaiting, kRunning, kDone };

struct Sequence {
  uint64_t id = 0;
  uint64_t arrival = 0;  // order of submission
  int32_t priority = 0;  // lower first
  uint64_t name_space = 0;
  std::vector<int32_t> tokens;  // prompt, then output; capacity reserved at submission
  int32_t prompt_tokens = 0;
  int32_t max_tokens = 0;  // prompt + output it may reach
  SequenceState state = SequenceState::kWaiting;

  int32_t computed = 0;         // tokens whose keys and values are written
  int32_t cached_tokens = 0;    // prompt tokens taken from the tree at first admission
  bool counted_cached = false;  // cached_tokens is final once it has computed a token itself
  std::vector<int32_t> pages;   // page table; capacity reserved at submission
  int32_t tree_pages = 0;       // leading pages that are nodes of the prefix tree
  int32_t reserved_pages = 0;   // what admission promised it
  bool in_pass = false;         // a chunk of it is being computed over several steps

  // Guesses of what follows `tokens`, computed and verified with the next step, and gone after it.
  std::array<int32_t, kMaxDraftTokens> draft{};
  int32_t drafted = 0;

  int32_t length() const { return static_cast<int32_t>(tokens.size()); }
  bool decoding() const { return computed == length() - 1 && length() > prompt_tokens; }
  // Of the tokens and, behind them, the draft.
  int32_t token_at(int32_t position) const {
    return position < length() ? tokens[position] : draft[position - length()];
  }
  int32_t pages_for(int32_t n) const { return (n + kPageTokens - 1) / kPageTokens; }
  std::span<const int32_t> page_tokens(int32_t page) const {
    return {tokens.data() + static_cast<size_t>(page) * kPageTokens, kPageTokens};
  }
};

}  // namespace wok
