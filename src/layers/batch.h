// What one step computes: a flat list of tokens of many sequences. Prefill chunks, decodes and
// decodes with drafts differ only in query_len. Views into arrays the engine owns.
#pragma once

#include <cstdint>
#include <span>

namespace wok {

struct SequenceSpan {
  int32_t query_begin = 0;  // first of its tokens in the flat list
  int32_t query_len = 0;
  int32_t kv_len = 0;                   // positions that exist after this step: last position + 1
  const int32_t* page_table = nullptr;  // covers kv_len positions
};

struct Batch {
  std::span<const int32_t> tokens;
  std::span<const int32_t> positions;  // one a token
  std::span<const SequenceSpan> sequences;
  std::span<const int32_t> token_sequence;  // which sequence a token belongs to
  std::span<const int32_t> logit_rows;      // tokens whose logits are wanted
};

}  // namespace wok
