#include "engine/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace wok {

void ModelDrafts::follow(std::span<const int32_t> tokens) {
  const auto length = static_cast<int32_t>(tokens.size());
  if (count_ == 0) {
    hopeful_ = hopeful_ || length >= hope_at_;
    return;
  }
  int32_t same = 0;
  for (bool right = true; right && same < count_ && from_ + same < length;) {
    right = tokens[from_ + same] == draft_[same];
    chance_ += kNew * ((right ? 1.0f : 0.0f) - chance_);
    ++learned_;
    same += right ? 1 : 0;
  }
  known_ = std::min(known_, from_ + same);
  count_ = 0;
  // Drafts on merit, or a hope that has had its chance.
  patience_ = hopeful_ ? std::min(2 * patience_, kLatest) : kSoonest;
  hopeful_ = false;
  hope_at_ = length + patience_;
}

void ModelDrafts::refused(int32_t length) {
  if (!hopeful_) return;
  hopeful_ = false;
  patience_ = std::min(2 * patience_, kLatest);
  hope_at_ = length + patience_;
}

Result<std::unique_ptr<DraftModel>> DraftModel::create(const Model& model, int32_t target_vocab,
                                                       int32_t context_tokens, int32_t slots,
                                                       uint64_t max_bytes, int32_t threads) {
  const int32_t context = std::min(context_tokens, model.config().context_tokens);
  const KvShape shape = model.kv_shape(kKvFormat_f16);
  const auto pages = static_cast<uint64_t>((context + kPageTokens - 1) / kPageTokens);
  const uint64_t slot_bytes = pages * shape.page_bytes();
  const auto fit = static_cast<int32_t>(std::min<uint64_t>(max_bytes / slot_bytes, slots));
  if (fit == 0) {
    return Error{ErrorKind::kNoMemory,
                 fmt::format("the draft model's cache of {} tokens takes {} MiB and {} are there "
                             "for it: give a smaller --context, or no --draft-model",
                             context, slot_bytes >> 20, max_bytes >> 20)};
  }
  WOK_TRY(memory, PageMemory::create(shape, static_cast<int32_t>(pages) * fit));
  const int32_t vocab = std::min(model.config().vocab, target_vocab);
  return std::unique_ptr<DraftModel>(
      new DraftModel(model, std::move(memory), vocab, context, fit, threads));
}

DraftModel::DraftModel(const Model& model, PageMemory memory, int32_t vocab, int32_t context_tokens,
                       int32_t slots, int32_t threads)
    : model_(model),
      memory_(std::move(memory)),
      vocab_(vocab),
      context_tokens_(context_tokens),
      workspace_(model.config(), model.weights(), kReadTokens, slots, slots, threads) {
  for (int32_t page = 0; page < memory_.pages(); ++page) pages_.push_back(page);
  for (int32_t slot = slots; slot-- > 0;) free_slots_.push_back(slot);
  for (std::vector<int32_t>* list : {&tokens_, &positions_, &token_sequence_}) {
    list->reserve(kReadTokens);
  }
  logit_rows_.reserve(slots);
  spans_.reserve(slots);
  rows_.reserve(slots);
  for (int32_t i = 0; i < threads; ++i) samplers_.emplace_back(model.kernels(), vocab);
}

bool DraftModel::start(const Sequence& sequence, ModelDrafts& drafts) {
  // One that does not know a token is past what it can read for good.
  while (drafts.checked_ < sequence.length() && sequence.tokens[drafts.checked_] < vocab_) {
    ++drafts.checked_;
  }
  if (drafts.checked_ < sequence.length() ||
      sequence.length() + kMaxDraftTokens > context_tokens_) {
    return false;
  }
  if (drafts.slot_ >= 0) return true;
  if (free_slots_.empty()) return false;
  drafts.slot_ = free_slots_.back();
  free_slots_.pop_back();
  drafts.hopeful_ = false;
  drafts.chance_ = prior_;
  drafts.hope_at_ = sequence.length() + drafts.patience_;
  return true;
}

void DraftModel::release(ModelDrafts& drafts) {
  if (drafts.slot_ < 0) return;
  free_slots_.push_back(drafts.slot_);
  drafts.slot_ = -1;
  if (drafts.learned_ >= ModelDrafts::kEnough) {
    prior_ += static_cast<float>(kNew) * (drafts.chance_ - prior_);
  }
}

void DraftModel::clear_batch() {
  for (std::vector<int32_t>* list : {&tokens_, &positions_, &token_sequence_, &logit_rows_}) {
    list->clear();
  }
  spans_.clear();
  rows_.clear();
}

// The job's next tokens that the model has not read.
void DraftModel::add(const DraftJob& job, int32_t tokens) {
  const Sequence& s = *job.sequence;
  ModelDrafts& drafts = *job.drafts;
  const auto first = static_cast<int32_t>(tokens_.size());
  const int32_t end = drafts.known_ + tokens;
  for (int32_t p = drafts.known_; p < end; ++p) {
    tokens_.push_back(s.tokens[p]);
    positions_.push_back(p);
    token_sequence_.push_back(static_cast<int32_t>(spans_.size()));
  }
  const auto slot_pages = static_cast<int64_t>((context_tokens_ + kPageTokens - 1) / kPageTokens);
  spans_.push_back({first, tokens, end, pages_.data() + drafts.slot_ * slot_pages});
  drafts.known_ = end;
}

// Milliseconds it took.
double DraftModel::compute(ComputePool& pool) {
  const auto begin = std::chrono::steady_clock::now();
  const Batch batch{tokens_,         positions_,  spans_,
                    token_sequence_, logit_rows_, static_cast<int32_t>(tokens_.size())};
  model_.forward(batch, memory_, pool, workspace_);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// What came since the model read last, and the first draft of those it has read to the end.
void DraftModel::read(std::span<DraftJob> jobs, double room_ms, ComputePool& pool) {
  clear_batch();
  const double room = read_token_ms_ > 0 ? room_ms / read_token_ms_ : kLeastRead;
  const auto each = std::max(kLeastRead, static_cast<int32_t>(std::min<double>(room, kReadTokens) /
                                                              static_cast<double>(jobs.size())));
  for (DraftJob& job : jobs) {
    const int32_t left = kReadTokens - static_cast<int32_t>(tokens_.size());
    const int32_t missing = job.sequence->length() - job.drafts->known_;
    const int32_t now = std::min({missing, each, left});
    if (now < missing) job.count = 0;
    if (now == 0) continue;
    add(job, now);
    if (job.count == 0) continue;
    logit_rows_.push_back(static_cast<int32_t>(tokens_.size()) - 1);
    rows_.push_back({&job, -1});
  }
  const auto tokens = static_cast<double>(tokens_.size());
  const double ms = compute(pool);
  if (tokens >= kLeastRead) {
    const double token_ms = ms / tokens;
    read_token_ms_ += (read_token_ms_ > 0 ? kNew : 1) * (token_ms - read_token_ms_);
  }
  sample(pool);
}

// Appends what the rows' sequences would sample to them.
void DraftModel::sample(ComputePool& pool) {
  const int64_t stride = model_.config().vocab;
  pool.run(static_cast<int32_t>(rows_.size()), [&](int32_t i, int32_t worker) {
    const DraftJob& job = *rows_[i].job;
    const Sequence& s = *job.sequence;
    rows_[i].token = samplers_[worker]
                         .sample({.params = job.sampling,
                                  .tokens = s.tokens,
                                  .prompt_tokens = s.prompt_tokens,
                                  .stop_tokens = job.stop_tokens,
                                  .logits = {workspace_.logits.data() + i * stride,
                                             static_cast<size_t>(vocab_)}})
                         .token;
  });
  for (const Row& row : rows_) row.job->sequence->tokens.push_back(row.token);
}

void DraftModel::draft(std::span<DraftJob> jobs, double room_ms, ComputePool& pool) {
  if (jobs.empty()) return;
  read(jobs, room_ms, pool);
  for (int32_t made = 1;; ++made) {
    clear_batch();
    for (DraftJob& job : jobs) {
      if (job.count <= made) continue;
      add(job, 1);
      logit_rows_.push_back(static_cast<int32_t>(rows_.size()));
      rows_.push_back({&job, -1});
    }
    if (rows_.empty()) break;
    const double ms = compute(pool);
    pass_ms_ += (pass_ms_ > 0 ? kNew : 1) * (ms - pass_ms_);
    sample(pool);
  }
  for (DraftJob& job : jobs) {
    Sequence& s = *job.sequence;
    ModelDrafts& drafts = *job.drafts;
    drafts.count_ = job.count;
    drafts.from_ = s.length() - job.count;
    std::copy_n(s.tokens.end() - job.count, job.count, drafts.draft_.begin());
    std::copy_n(s.tokens.end() - job.count, job.count, s.draft.begin());
    s.tokens.resize(static_cast<size_t>(drafts.from_));
  }
}

}  // namespace wok
