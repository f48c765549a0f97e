// wok eval: how well a model predicts a text, and how far it is from another one that it was made
// from. Perplexity as llama.cpp's tool computes it: the text in chunks, each begun with BOS where
// the model wants one, the second half of a chunk scored, so that every scored token has seen
// half a chunk at least.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace wok::bench {

// A mean with half of its 95 % confidence interval. Tokens of one chunk depend on each other, so
// the spread is that of the chunks' means; with one chunk there is no telling (NaN).
struct Mean {
  double value = 0, half_width = 0;
};

// Against a reference: P is its probability of each token, Q that of the model, `right` the token
// that follows in the text.
struct Divergence {
  double reference_perplexity = 0;
  Mean perplexity_ratio;  // Q's divided by P's; half_width relative to the same text
  Mean kl;                // KL(P, Q) a token, in nats
  double kl_median = 0, kl_99 = 0, kl_999 = 0, kl_max = 0;
  Mean same_top;     // share of tokens where both find the same one most probable
  Mean flipped;      // of those that P's most probable token is right for, lost by Q
  Mean right_delta;  // Q(right) - P(right)
  double right_delta_rms = 0;
};

struct EvalReport {
  int32_t chunks = 0, chunk_tokens = 0;
  int64_t scored_tokens = 0;
  Mean perplexity;  // half_width of the perplexity itself, from that of its logarithm
  Mean log_loss;    // nats a token
  std::optional<Divergence> divergence;
  double tokens_per_s = 0;  // of the model alone, as it was computed here
};

struct EvalModel {
  const Model* model = nullptr;
  const KvFormat* kv_format = nullptr;
  bool fast_prefill = false;
};

struct EvalOptions {
  int32_t chunk_tokens = 512;
  int32_t chunks = 0;   // at most so many; 0: all that the text has
  int32_t bos_id = -1;  // takes the place of each chunk's first token; -1: nothing does
};

// `against` may be null. Errors: kInvalid where the text is shorter than a chunk, a chunk does not
// fit a model's context, or vocabularies differ; those of PageMemory::create.
// `progress` is told how many chunks are done of how many; false stops (error kCancelled).
Result<EvalReport> evaluate(const EvalModel& model, const EvalModel* against,
                            const std::vector<int32_t>& tokens, const EvalOptions& options,
                            ComputePool& pool,
                            const std::function<bool(int32_t done, int32_t of)>& progress);

std::string eval_table(const EvalReport& report);
std::string eval_json(const EvalReport& report, const std::string& model,
                      const std::string& against, const std::string& text);

}  // namespace wok::bench
