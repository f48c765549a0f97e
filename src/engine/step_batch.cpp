#include "engine/step_batch.h"

namespace wok {

StepBatch::StepBatch(const Model& model, int32_t max_tokens, int32_t max_sequences,
                     int32_t max_logit_rows, int32_t threads)
    : workspace(model.config(), model.weights(), max_tokens, max_sequences, max_logit_rows,
                threads) {
  tokens_.reserve(max_tokens);
  positions_.reserve(max_tokens);
  token_sequence_.reserve(max_tokens);
  logit_rows_.reserve(max_logit_rows);
  spans_.reserve(max_sequences);
  outcomes.reserve(max_sequences);
  sampled.resize(max_logit_rows);
}

void StepBatch::add(const ScheduledChunk& chunk) {
  Sequence& s = *chunk.sequence;
  const auto first = static_cast<int32_t>(tokens_.size());
  for (int32_t p = chunk.begin; p < chunk.begin + chunk.count; ++p) {
    tokens_.push_back(s.token_at(p));
    positions_.push_back(p);
    token_sequence_.push_back(static_cast<int32_t>(spans_.size()));
  }
  spans_.push_back({first, chunk.count, chunk.begin + chunk.count, s.pages.data()});
  if (!chunk.wants_logits) return;
  outcomes.push_back({.sequence = &s, .first_row = static_cast<int32_t>(logit_rows_.size())});
  // The last token's, and those of the drafts behind it.
  for (int32_t i = chunk.count - 1 - s.drafted; i < chunk.count; ++i) {
    logit_rows_.push_back(first + i);
  }
}

void StepBatch::build(std::span<const ScheduledChunk> chunks, bool fast_prefill) {
  tokens_.clear();
  positions_.clear();
  token_sequence_.clear();
  logit_rows_.clear();
  spans_.clear();
  outcomes.clear();
  for (const ScheduledChunk& chunk : chunks) {
    if (!chunk.of_prompt()) add(chunk);
  }
  exact_tokens_ = tokens();
  for (const ScheduledChunk& chunk : chunks) {
    if (chunk.of_prompt()) add(chunk);
  }
  if (!fast_prefill) exact_tokens_ = tokens();
}

}  // namespace wok
