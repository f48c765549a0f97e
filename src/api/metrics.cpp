#include "api/metrics.h"

#include <algorithm>
#include <array>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "api/engine_metrics.h"

namespace wok {
namespace {

using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// vLLM's buckets, so that its dashboards' heat maps fit.
Buckets token_buckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
          0.75,  1,      2.5,   5,    7.5,  10,   20,   40,   80,  160,  640};
}
Buckets request_buckets() {
  return {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5, 5,   10,
          15,   20,   30,  40,  50,  60,  120, 240, 480, 960, 1920};
}

constexpr std::array<const char*, 5> kClasses = {"1xx", "2xx", "3xx", "4xx", "5xx"};

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  Histogram* first_token =
      histogram("wok_time_to_first_token_seconds", "From the request's arrival to its first token",
                token_buckets());
  Histogram* next_token = histogram("wok_inter_token_latency_seconds",
                                    "Between two tokens of one choice", token_buckets());
  Histogram* whole = histogram("wok_e2e_request_latency_seconds",
                               "From the request's arrival to its last token", request_buckets());
  Histogram* queue =
      histogram("wok_request_queue_time_seconds", "Waiting to be scheduled", request_buckets());
  Histogram* prefill = histogram("wok_request_prefill_time_seconds",
                                 "From scheduled to first token", request_buckets());
  Histogram* decode =
      histogram("wok_request_decode_time_seconds", "From first to last token", request_buckets());
  std::array<prometheus::Counter*, 5> success{};    // by FinishReason
  std::array<prometheus::Counter*, 5> responses{};  // by status / 100 - 1

  State() {
    auto& successes = prometheus::BuildCounter()
                          .Name("wok_request_success_total")
                          .Help("Finished choices by finish reason")
                          .Register(registry);
    const std::array<const char*, 5> reasons = {"", "stop", "length", "abort", "error"};
    for (size_t i = 1; i < reasons.size(); ++i) {
      success[i] = &successes.Add({{"finished_reason", reasons[i]}});
    }
    auto& replies = prometheus::BuildCounter()
                        .Name("wok_http_responses_total")
                        .Help("HTTP replies by class of status")
                        .Register(registry);
    for (size_t i = 0; i < kClasses.size(); ++i) {
      responses[i] = &replies.Add({{"status", kClasses[i]}});
    }
  }

  Histogram* histogram(const char* name, const char* help, const Buckets& buckets) {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

void Metrics::first_token(int64_t since_arrival_ns) {
  state_->first_token->Observe(1e-9 * static_cast<double>(since_arrival_ns));
}

void Metrics::next_token(int64_t since_last_ns) {
  state_->next_token->Observe(1e-9 * static_cast<double>(since_last_ns));
}

void Metrics::finished(FinishReason reason, int64_t since_arrival_ns) {
  const auto index = static_cast<size_t>(reason);
  if (index > 0 && index < state_->success.size()) state_->success[index]->Increment();
  state_->whole->Observe(1e-9 * static_cast<double>(since_arrival_ns));
}

void Metrics::engine_times(const Event& last) {
  state_->queue->Observe(1e-9 * static_cast<double>(last.queue_ns));
  state_->prefill->Observe(1e-9 * static_cast<double>(last.prefill_ns));
  state_->decode->Observe(1e-9 * static_cast<double>(last.decode_ns));
}

void Metrics::replied(int status) {
  state_->responses[std::clamp(status / 100, 1, 5) - 1]->Increment();
}

std::string Metrics::serialize(const EngineStats* stats, const std::string& model,
                               const std::string& version) const {
  auto families = state_->registry.Collect();
  append_build_info(version, families);
  if (stats != nullptr) append_engine_metrics(*stats, families);
  append_vllm_aliases(families);
  label_with_model(model, families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace wok
