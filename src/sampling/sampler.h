// The next token of one row of logits. Stateless but for scratch: everything that decides
// (parameters, history, seed) comes in, so the same request samples the same tokens whatever else
// is running.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/lazy_vector.h"
#include "kernels/kernels.h"
#include "sampling/params.h"

namespace wok {

struct SamplingInput {
  const SamplingParams* params = nullptr;
  std::span<const int32_t> tokens;  // prompt, then output
  int32_t prompt_tokens = 0;
  std::span<const int32_t> stop_tokens;  // may not be chosen before min_tokens
  std::span<float> logits;               // [vocab]; changed in place
};

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;
};

struct SampledToken {
  int32_t token = -1;
  float logprob = 0;  // of the model's own distribution (temperature 1)
  int32_t top_count = 0;
  TokenLogprob top[kMaxTopLogprobs];
};

// One worker's scratch, for a vocabulary; sized once.
class Sampler {
 public:
  Sampler(const KernelTable& kernels, int32_t vocab);
  SampledToken sample(const SamplingInput& input);

 private:
  struct Candidate {
    int32_t token;
    float weight;  // logit, later probability
  };
  void penalize(const SamplingInput& input);
  void report(const SamplingInput& input, SampledToken& out);
  int32_t choose(const SamplingInput& input);

  const KernelTable* kernels_;
  LazyVector<float> probabilities_;  // [vocab]
  LazyVector<int32_t> counts_;       // [vocab], zero between calls
  std::vector<Candidate> candidates_;
  std::vector<float> raw_;  // logits before penalties
};

// A uniform number in [0, 1) that depends on seed and position only.
double uniform(uint64_t seed, uint64_t position);

}  // namespace wok
