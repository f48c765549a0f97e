// Prefill beside streams (docs/adr/0012): a prompt chunk too dear for one step is computed layer by
// layer, some after each step's decodes, as many as the step's target leaves time for.
#include "engine/engine_impl.h"

namespace wok {

// Makes the plan's prefill a pass when it is more than the tokens a step has room for.
std::span<const ScheduledChunk> EngineImpl::start_pass(std::span<const ScheduledChunk> plan,
                                                       int32_t room) {
  int32_t prefill = 0;
  for (const ScheduledChunk& chunk : plan) {
    if (!chunk.sequence->decoding()) prefill += chunk.count;
  }
  if (prefill <= room) return plan;
  const std::span<const ScheduledChunk> chunks = scheduler_.defer_prefill();
  note_admission(chunks);
  pass_.batch.build(chunks, options_.fast_prefill);
  pass_.layer = 0;
  pass_.ns = 0;
  pass_.layer_ns = 0;
  pass_.waited = false;
  return scheduler_.planned();
}

// As many layers as end before until_ns, if each takes as long as the one before. When not even one
// does this step has none, which is so while the machine is busy with something else; but never two
// steps in a row: the pass always gets on.
void EngineImpl::advance_pass(int64_t until_ns) {
  const Batch batch = pass_.batch.view();
  int64_t now = monotonic_ns();
  pass_.waited = !pass_.waited && now + pass_.layer_ns > until_ns;
  if (pass_.waited) return;
  do {
    const int64_t begin = now;
    model_.forward_layers(batch, memory_, *pool_, pass_.batch.workspace, pass_.layer,
                          pass_.layer + 1);
    now = monotonic_ns();
    pass_.layer_ns = now - begin;
    pass_.ns += pass_.layer_ns;
    if (++pass_.layer == model_.config().layers) return end_pass();
  } while (now + pass_.layer_ns <= until_ns);
}

void EngineImpl::end_pass() {
  sample(pass_.batch);
  scheduler_.commit_pass();
  const int32_t tokens = pass_.batch.tokens();
  counters_.prompt_tokens += static_cast<uint64_t>(tokens);
  budget_.record(0, tokens, static_cast<double>(pass_.ns) * 1e-6);
  pass_.layer = -1;
  deliver(pass_.batch);
  for (const RequestId id : pass_.aborted) end_aborted(id);
  pass_.aborted.clear();
  tell();
}

void EngineImpl::drop_pass() {
  scheduler_.drop_pass();
  pass_.layer = -1;
  pass_.aborted.clear();
}

}  // namespace wok
