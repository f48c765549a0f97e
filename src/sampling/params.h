// How the next token is chosen from logits. Defaults are OpenAI's: temperature 1, no truncation.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace wok {

constexpr int kMaxTopLogprobs = 20;  // OpenAI's limit

struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1): relative to the most likely token
  float typical_p = 1.0f;           // (0, 1]: locally typical sampling, arXiv 2202.00666
  float repetition_penalty = 1.0f;  // > 0; over prompt and output, CTRL (arXiv 1909.05858)
  float presence_penalty = 0.0f;    // [-2, 2]; over the output
  float frequency_penalty = 0.0f;   // [-2, 2]; over the output
  uint64_t seed = 0;                // same seed, same request: same tokens
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  int32_t top_logprobs = -1;  // -1: none; 0: the chosen token's only; at most 20
  int32_t min_tokens = 0;     // stop tokens cannot be chosen before that many
  bool ignore_eos = false;
};

}  // namespace wok
