// Drafts by a smaller model of the same vocabulary (speculative decoding, arXiv 2211.17192). It
// keeps keys and values of its own for the sequences that it drafts for, a slot each. Step thread
// only; nothing allocates after create().
//
// A draft is what the sequence's own sampling makes of the smaller model's logits: same parameters,
// same history, same random number of the position. So it is right when both models would have said
// the same, whether the request is greedy or sampled, and is verified as a looked-up one is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/page_memory.h"
#include "models/model.h"
#include "sampling/sampler.h"
#include "scheduler/sequence.h"

namespace wok {

// What the draft model has of one sequence, and how often it was right about it.
class ModelDrafts {
 public:
  // Compares the last draft with the tokens that came. `tokens`: those of the last call, grown.
  void follow(std::span<const int32_t> tokens);

  // How likely a draft is right when all before it are. For a sequence that has had none for a
  // while this is hopeful now and then: what a draft would be is known only once it is made.
  float chance() const { return hopeful_ ? kHope : chance_; }
  // The step that is being computed verifies drafts of the model.
  bool drafted() const { return count_ > 0; }
  // It was given none at that chance.
  void refused(int32_t length);

 private:
  friend class DraftModel;
  static constexpr float kHope = 0.9f, kNew = 0.1f;
  static constexpr int32_t kSoonest = 64, kLatest = 2048;  // tokens till it hopes again
  static constexpr int32_t kEnough = 16;                   // drafts that say something

  int32_t slot_ = -1;
  int32_t known_ = 0;    // positions whose keys and values are there and right
  int32_t checked_ = 0;  // tokens known to be in the draft model's vocabulary
  float chance_ = kHope;
  int32_t learned_ = 0;  // drafts that chance_ has learned from
  bool hopeful_ = false;
  int32_t hope_at_ = 0, patience_ = kSoonest;
  int32_t from_ = 0, count_ = 0;  // the last draft, from position from_ on
  std::array<int32_t, kMaxDraftTokens> draft_{};
};

// One sequence's part in drafting.
struct DraftJob {
  Sequence* sequence = nullptr;  // room is reserved for its drafts in its tokens
  ModelDrafts* drafts = nullptr;
  const SamplingParams* sampling = nullptr;
  std::span<const int32_t> stop_tokens;
  int32_t count = 0;  // wanted, at most kMaxDraftTokens; then: made, in sequence->draft
};

class DraftModel {
 public:
  // `model` must outlive it; its vocabulary begins as the target's does, which has target_vocab
  // tokens. slots: sequences it can draft for at once, fewer if their caches for `context_tokens`
  // (or the model's context) would take more than max_bytes. Errors: kNoMemory: not one fits.
  static Result<std::unique_ptr<DraftModel>> create(const Model& model, int32_t target_vocab,
                                                    int32_t context_tokens, int32_t slots,
                                                    uint64_t max_bytes, int32_t threads);

  // False: no drafts for this sequence now. No slot is left, it is past the model's context, or
  // holds a token that the model does not have.
  bool start(const Sequence& sequence, ModelDrafts& drafts);
  void release(ModelDrafts& drafts);

  // Drafts for all jobs together. Who is far ahead of what the model has read gets none: it reads a
  // part of that, as much as takes about room_ms.
  void draft(std::span<DraftJob> jobs, double room_ms, ComputePool& pool);

  // What a draft more takes for each of `sequences`; 0 before any was made.
  double draft_ms(int32_t sequences) const { return pass_ms_ / sequences; }

 private:
  struct Row {  // of logits
    DraftJob* job;
    int32_t token;
  };

  DraftModel(const Model& model, PageMemory memory, int32_t vocab, int32_t context_tokens,
             int32_t slots, int32_t threads);
  void clear_batch();
  void add(const DraftJob& job, int32_t tokens);
  double compute(ComputePool& pool);
  void read(std::span<DraftJob> jobs, double room_ms, ComputePool& pool);
  void sample(ComputePool& pool);

  static constexpr int32_t kReadTokens = 256, kLeastRead = 16;  // of a step
  static constexpr double kNew = 0.1;

  const Model& model_;
  PageMemory memory_;
  int32_t vocab_, context_tokens_;
  std::vector<int32_t> pages_;  // [slots, pages of a context]
  std::vector<int32_t> free_slots_;
  Workspace workspace_;
  std::vector<int32_t> tokens_, positions_, token_sequence_, logit_rows_;
  std::vector<SequenceSpan> spans_;
  std::vector<Row> rows_;
  std::vector<Sampler> samplers_;  // one a worker
  float prior_ = ModelDrafts::kHope;
  double pass_ms_ = 0, read_token_ms_ = 0;
};

}  // namespace wok
