#include "engine/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "base/log.h"
#include "engine/engine_impl.h"

namespace wok {
namespace {

// Of what is free, for the pool when --kv-memory does not say; of the rest, for a draft model's
// cache at most.
constexpr double kMemoryShare = 0.5;

// Memory this process may still take: what the machine has available, within the cgroup's limit.
uint64_t available_memory() {
  uint64_t available = 0;
  std::ifstream info("/proc/meminfo");
  for (std::string name, unit; info >> name;) {
    uint64_t kib = 0;
    info >> kib;
    std::getline(info, unit);
    if (name == "MemAvailable:") available = kib << 10;
  }
  uint64_t limit = 0, used = 0;
  std::ifstream max("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  if (max >> limit && current >> used && limit > 0) {
    available = std::min(available, limit > used ? limit - used : 0);
  }
  return available;
}

std::string mib(uint64_t bytes) {
  return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
}

Status check_options(const EngineOptions& o, int32_t trained_context) {
  const auto range = [](const char* name, int64_t value, int64_t low, int64_t high) -> Status {
    if (value >= low && value <= high) return Ok{};
    return invalid(fmt::format("{} is {}, expected {} to {}", name, value, low, high));
  };
  WOK_RETURN_IF_ERROR(range("--threads", o.threads, 0, 1024));
  WOK_RETURN_IF_ERROR(range("--context", o.context_tokens, 0, trained_context));
  WOK_RETURN_IF_ERROR(range("--max-sequences", o.max_sequences, 1, 4096));
  WOK_RETURN_IF_ERROR(range("--max-queued", o.max_queued, 0, 1 << 20));
  WOK_RETURN_IF_ERROR(range("--token-budget", o.token_budget, kPageTokens, 1 << 16));
  WOK_RETURN_IF_ERROR(range("--draft-tokens", o.draft_tokens, 1, kMaxDraftTokens));
  if (o.max_sequences > o.token_budget) {
    return invalid(
        fmt::format("--max-sequences {} is more than --token-budget {}: each running "
                    "sequence takes a token of every step",
                    o.max_sequences, o.token_budget));
  }
  return Ok{};
}

// Rows whose logits a step may want: one a sequence, or those of a step that verifies drafts.
int32_t most_logit_rows(const EngineOptions& options) {
  if (options.speculation == Speculation::off) return options.max_sequences;
  return std::max(options.max_sequences, options.draft_tokens + 1);
}

}  // namespace

int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<std::unique_ptr<Engine>> Engine::create(const Model& model, const EngineOptions& options,
                                               std::unique_ptr<ComputePool> pool) {
  const DecoderConfig& config = model.config();
  WOK_RETURN_IF_ERROR(check_options(options, config.context_tokens));
  const int32_t context =
      options.context_tokens > 0 ? options.context_tokens : config.context_tokens;
  const KvShape shape = model.kv_shape(kKvFormat_f16);
  const uint64_t page_bytes = shape.page_bytes();
  const uint64_t context_pages = (static_cast<uint64_t>(context) + kPageTokens - 1) / kPageTokens;
  const uint64_t useful = context_pages * options.max_sequences * page_bytes;
  const uint64_t available = available_memory();
  const uint64_t share = static_cast<uint64_t>(static_cast<double>(available) * kMemoryShare);
  const uint64_t bytes = options.kv_bytes > 0 ? options.kv_bytes : std::min(useful, share);
  if (options.kv_bytes > available) {
    return Error{
        ErrorKind::kNoMemory,
        fmt::format("--kv-memory asks for {}, {} are free: {} are missing", mib(options.kv_bytes),
                    mib(available), mib(options.kv_bytes - available))};
  }
  const uint64_t pages = std::min<uint64_t>(bytes / page_bytes, 1u << 30);
  if (pages < context_pages) {
    const uint64_t tokens = pages * kPageTokens;
    return Error{
        ErrorKind::kNoMemory,
        fmt::format("one sequence of {} tokens needs {} of KV cache and there are {}: {} are "
                    "missing. Give --kv-memory {}, or --context {} at most",
                    context, mib(context_pages * page_bytes), mib(bytes),
                    mib(context_pages * page_bytes - bytes), mib(context_pages * page_bytes),
                    tokens)};
  }
  WOK_TRY(memory, PageMemory::create(shape, static_cast<int32_t>(pages)));
  if (pool == nullptr) {
    pool = std::make_unique<ComputePool>(options.threads > 0 ? options.threads : usable_cpus());
  }
  std::unique_ptr<DraftModel> draft_model;
  if (options.draft_model != nullptr && options.speculation != Speculation::off) {
    // A step with more sequences than draft_tokens has no drafts.
    const auto most = static_cast<uint64_t>(static_cast<double>(available - bytes) * kMemoryShare);
    WOK_TRY(made, DraftModel::create(*options.draft_model, config.vocab, context,
                                     std::min(options.draft_tokens, options.max_sequences), most,
                                     pool->threads()));
    draft_model = std::move(made);
  }
  return std::unique_ptr<Engine>(std::make_unique<EngineImpl>(
      model, options, context, std::move(pool), std::move(memory), std::move(draft_model)));
}

EngineImpl::EngineImpl(const Model& model, const EngineOptions& options, int32_t context_tokens,
                       std::unique_ptr<ComputePool> pool, PageMemory memory,
                       std::unique_ptr<DraftModel> draft_model)
    : model_(model),
      options_(options),
      context_tokens_(context_tokens),
      pool_(std::move(pool)),
      memory_(std::move(memory)),
      cache_(memory_.pages()),
      scheduler_({.max_running = options.max_sequences,
                  .step_tokens = options.token_budget,
                  .prefix_cache = options.prefix_cache},
                 cache_),
      batch_(model, options.token_budget, options.max_sequences, most_logit_rows(options),
             pool_->threads()),
      budget_(options.token_budget, options.itl_target_ms),
      draft_budget_(options.draft_tokens + 1, options.draft_row_cost),
      draft_model_(std::move(draft_model)),
      pass_{.batch = {model, StepBudget::kPassTokens, StepBudget::kPassTokens,
                      StepBudget::kPassTokens, pool_->threads()}} {
  for (int32_t i = 0; i < pool_->threads(); ++i) {
    samplers_.emplace_back(model.kernels(), model.config().vocab);
  }
  shares_.reserve(options.max_sequences);
  jobs_.reserve(options.max_sequences);
  publish_stats();
  thread_ = std::thread([this] { loop(); });
}

EngineImpl::~EngineImpl() {
  stop_.store(true);
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_filled_.store(true);
  }
  inbox_wake_.notify_one();
  thread_.join();
}

Result<RequestId> EngineImpl::submit(Request request) {
  const auto refuse = [this](Error error) {
    refused_.fetch_add(1);
    return error;
  };
  if (draining_.load()) {
    return refuse({ErrorKind::kCancelled, "the server is shutting down and takes no new requests"});
  }
  WOK_CHECK(request.sink != nullptr, "a request has a sink for its events");
  if (request.prompt.empty()) return refuse(invalid("the prompt is empty"));
  for (const int32_t token : request.prompt) {
    if (token < 0 || token >= model_.config().vocab) {
      return refuse(invalid(fmt::format("token id {} is outside the vocabulary of {}", token,
                                        model_.config().vocab)));
    }
  }
  if (request.max_new_tokens < 1) {
    return refuse(
        invalid(fmt::format("max_new_tokens is {}, expected at least 1", request.max_new_tokens)));
  }
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t total = prompt + request.max_new_tokens;
  if (total > context_tokens_) {
    return refuse(
        too_large(fmt::format("the prompt has n_prompt = {} tokens and asks for {} more; "
                              "the context window is n_ctx = {}",
                              prompt, request.max_new_tokens, context_tokens_)));
  }
  if (!scheduler_.can_ever_fit(static_cast<int32_t>(total))) {
    return refuse(too_large(fmt::format("{} tokens can never fit the KV cache of {} pages of {}",
                                        total, cache_.pages(), kPageTokens)));
  }
  auto active = std::make_unique<ActiveRequest>();
  Sequence& s = active->sequence;
  s.id = next_id_.fetch_add(1);
  s.priority = request.priority;
  s.name_space = request.prefix_namespace;
  s.prompt_tokens = static_cast<int32_t>(prompt);
  s.max_tokens = static_cast<int32_t>(total);
  // All it will ever need, so that its steps allocate nothing.
  s.tokens.reserve(static_cast<size_t>(total));
  s.tokens.assign(request.prompt.begin(), request.prompt.end());
  s.pages.reserve(static_cast<size_t>(s.pages_for(s.max_tokens)));
  active->stop_tokens = request.stop_token_ids;
  active->stop_tokens.insert(active->stop_tokens.end(), options_.end_ids.begin(),
                             options_.end_ids.end());
  active->submitted_ns = monotonic_ns();
  active->request = std::move(request);
  const RequestId id = s.id;
  {
    const std::lock_guard lock(inbox_mutex_);
    const int64_t most = int64_t{options_.max_sequences} + options_.max_queued;
    if (in_flight_.load() >= most) {
      return refuse(
          {ErrorKind::kBusy, fmt::format("{} requests run or wait already; try later", most)});
    }
    in_flight_.fetch_add(1);
    s.arrival = id;
    submitted_.push_back(std::move(active));
    inbox_filled_.store(true);
  }
  inbox_wake_.notify_one();
  return id;
}

void EngineImpl::abort(RequestId id) {
  {
    const std::lock_guard lock(inbox_mutex_);
    aborted_.push_back(id);
    inbox_filled_.store(true);
  }
  inbox_wake_.notify_one();
}

EngineStats EngineImpl::stats() const {
  const std::lock_guard lock(stats_mutex_);
  EngineStats stats = published_;
  stats.refused = refused_.load();
  return stats;
}

}  // namespace wok
