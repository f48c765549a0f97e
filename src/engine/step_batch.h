// A batch, the workspace it is computed in and what its rows with logits bring. The engine has two:
// that of the step, and that of a prefill pass, which lasts several steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"
#include "models/model.h"
#include "sampling/sampler.h"
#include "scheduler/scheduler.h"

namespace wok {

// What a step brings a sequence whose logits it computed: tokens, in rows from first_row on.
struct SampledRows {
  Sequence* sequence = nullptr;
  int32_t first_row = 0;
  int32_t tokens = 0;                         // at least 1; more when drafts were right
  FinishReason finish = FinishReason::kNone;  // of the last of them
};

class StepBatch {
 public:
  // Sizes everything once: a step allocates nothing.
  StepBatch(const Model& model, int32_t max_tokens, int32_t max_sequences, int32_t max_logit_rows,
            int32_t threads);

  // fast_prefill: prompts are computed in the fast form (kernels.h, Activations).
  void build(std::span<const ScheduledChunk> chunks, bool fast_prefill);
  Batch view() const {
    return {tokens_, positions_, spans_, token_sequence_, logit_rows_, exact_tokens_};
  }
  int32_t tokens() const { return static_cast<int32_t>(tokens_.size()); }

  Workspace workspace;
  std::vector<SampledRows> outcomes;  // one a sequence that wants logits
  std::vector<SampledToken> sampled;  // [logit rows]

 private:
  void add(const ScheduledChunk& chunk);

  std::vector<int32_t> tokens_, positions_, token_sequence_, logit_rows_;
  std::vector<SequenceSpan> spans_;
  int32_t exact_tokens_ = 0;
};

}  // namespace wok
