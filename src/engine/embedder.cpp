#include "engine/embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace wok {

Embedder::Embedder(std::unique_ptr<ComputePool> pool, std::unique_ptr<EmbeddingModel> model,
                   const Options& options)
    : pool_(std::move(pool)), model_(std::move(model)), options_(options) {
  thread_ = std::thread([this] { work(); });
}

Embedder::~Embedder() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = draining_ = true;
    for (const auto& job : queue_) job->cancelled = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status Embedder::check(const std::vector<TokenSequence>& sequences) const {
  if (sequences.empty()) return invalid("a request without any text");
  for (size_t i = 0; i < sequences.size(); ++i) {
    const TokenSequence& s = sequences[i];
    const auto outside = [](const std::vector<int32_t>& ids, int32_t below) {
      return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= below; });
    };
    if (s.tokens.empty()) return invalid(fmt::format("text {} has no tokens", i));
    if (static_cast<int64_t>(s.tokens.size()) > model_->context_tokens()) {
      return too_large(fmt::format("text {} has {} tokens, the model takes {}", i, s.tokens.size(),
                                   model_->context_tokens()));
    }
    if (outside(s.tokens, model_->vocab())) {
      return invalid(
          fmt::format("text {} has a token outside the vocabulary of {}", i, model_->vocab()));
    }
    if (!s.types.empty() &&
        (s.types.size() != s.tokens.size() || outside(s.types, model_->token_types()))) {
      return invalid(fmt::format("text {} has token types that the model does not know", i));
    }
  }
  return Ok{};
}

Result<RequestId> Embedder::submit(std::vector<TokenSequence> sequences,
                                   std::function<void(EmbeddingResult)> done) {
  Status checked = check(sequences);
  auto job = std::make_shared<Job>();
  job->left = sequences.size();
  job->values.resize(sequences.size() * static_cast<size_t>(model_->width()));
  job->sequences = std::move(sequences);
  job->done = std::move(done);
  std::lock_guard lock(mutex_);
  if (checked.ok() && draining_) checked = Error{ErrorKind::kCancelled, "the server is draining"};
  if (checked.ok() && queue_.size() >= static_cast<size_t>(options_.max_queued)) {
    checked = Error{ErrorKind::kBusy,
                    fmt::format("{} requests wait already; try again later", queue_.size())};
  }
  if (!checked.ok()) {
    ++stats_.refused;
    return checked.error();
  }
  job->id = ++last_id_;
  queue_.push_back(job);
  changed_.notify_one();
  return job->id;
}

void Embedder::cancel(RequestId id) {
  std::lock_guard lock(mutex_);
  for (const auto& jobs : {std::vector(queue_.begin(), queue_.end()), begun_}) {
    for (const auto& job : jobs) {
      if (job->id == id) job->cancelled = true;
    }
  }
  changed_.notify_one();
}

void Embedder::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
}

bool Embedder::idle() const {
  std::lock_guard lock(mutex_);
  return queue_.empty() && begun_.empty();
}

EngineStats Embedder::stats() const {
  std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  for (const auto& job : queue_) ++(job->next > 0 ? stats.running : stats.waiting);
  stats.running += static_cast<int32_t>(begun_.size());
  return stats;
}

std::vector<std::shared_ptr<Embedder::Job>> Embedder::take_cancelled() {
  std::vector<std::shared_ptr<Job>> gone;
  for (const auto& job : queue_) {
    if (job->cancelled) gone.push_back(job);
  }
  std::erase_if(queue_, [](const auto& job) { return job->cancelled; });
  stats_.aborted += gone.size();
  return gone;
}

// Sequences of the requests in turn, as many as a batch may have tokens.
void Embedder::take_batch() {
  batch_.clear();
  int64_t tokens = 0;
  while (!queue_.empty()) {
    const std::shared_ptr<Job> job = queue_.front();
    const auto count = static_cast<int64_t>(job->sequences[job->next].tokens.size());
    if (tokens + count > model_->batch_tokens()) break;
    tokens += count;
    batch_.push_back({job, job->next++});
    queue_.pop_front();
    if (job->next < job->sequences.size()) {
      queue_.push_back(job);
    } else {
      begun_.push_back(job);
    }
  }
  stats_.prompt_tokens += static_cast<uint64_t>(tokens);
}

void Embedder::compute() {
  const auto width = static_cast<size_t>(model_->width());
  sequences_.clear();
  for (const Place& place : batch_) sequences_.push_back(&place.job->sequences[place.index]);
  results_.resize(batch_.size() * width);
  model_->compute(sequences_, results_.data());
  for (size_t i = 0; i < batch_.size(); ++i) {
    std::copy_n(&results_[i * width], width, &batch_[i].job->values[batch_[i].index * width]);
  }
}

void Embedder::work() {
  for (;;) {
    std::vector<std::shared_ptr<Job>> gone;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      gone = take_cancelled();
      take_batch();
    }
    for (const auto& job : gone) {
      job->done(Error{ErrorKind::kCancelled, "the request was cancelled"});
    }
    if (batch_.empty()) continue;
    compute();
    std::vector<std::shared_ptr<Job>> finished;
    {
      std::lock_guard lock(mutex_);
      ++stats_.steps;
      stats_.last_step_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count();
      for (const Place& place : batch_) {
        if (--place.job->left == 0) finished.push_back(place.job);
      }
      for (const auto& job : finished) std::erase(begun_, job);
      stats_.finished_stop += finished.size();
    }
    for (const auto& job : finished) job->done(std::move(job->values));
    batch_.clear();
  }
}

}  // namespace wok
