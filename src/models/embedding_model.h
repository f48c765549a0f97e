// What makes one vector, or one score, of a sequence of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wok {

struct TokenSequence {
  std::vector<int32_t> tokens;
  std::vector<int32_t> types;  // one a token, or empty: all 0
};

// Not thread-safe: one batch at a time.
class EmbeddingModel {
 public:
  virtual ~EmbeddingModel() = default;

  virtual int32_t context_tokens() const = 0;  // of one sequence
  virtual int32_t batch_tokens() const = 0;    // of all sequences of a batch; at least the former
  virtual int32_t vocab() const = 0;
  virtual int32_t token_types() const = 0;
  virtual bool ranks() const = 0;     // it gives a score, before any sigmoid
  virtual int32_t width() const = 0;  // of a vector; 1 where it ranks

  // out: [sequences, width()]. Sequences hold 1 to context_tokens() tokens, together at most
  // batch_tokens(), all in the vocabulary. A sequence's result is the same whatever others are in
  // the batch, bit for bit.
  virtual void compute(std::span<const TokenSequence* const> sequences, float* out) = 0;
};

}  // namespace wok
