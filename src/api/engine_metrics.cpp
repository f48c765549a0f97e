#include "api/engine_metrics.h"

#include <string_view>
#include <utility>

namespace wok {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Families = std::vector<MetricFamily>;
using Samples = std::vector<std::pair<std::string, double>>;  // label value, number

void append(Families& families, MetricType type, const char* name, const char* help,
            const char* label, const Samples& samples) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  for (const auto& [value, number] : samples) {
    ClientMetric metric;
    if (label != nullptr) metric.label.push_back({label, value});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = number;
    family.metric.push_back(std::move(metric));
  }
  families.push_back(std::move(family));
}

template <class Number>
void counter(Families& families, const char* name, const char* help, Number number) {
  append(families, MetricType::Counter, name, help, nullptr, {{"", static_cast<double>(number)}});
}

template <class Number>
void gauge(Families& families, const char* name, const char* help, Number number) {
  append(families, MetricType::Gauge, name, help, nullptr, {{"", static_cast<double>(number)}});
}

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"wok_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
    {"wok_inter_token_latency_seconds", "vllm:inter_token_latency_seconds"},
    {"wok_e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"},
    {"wok_request_queue_time_seconds", "vllm:request_queue_time_seconds"},
    {"wok_request_prefill_time_seconds", "vllm:request_prefill_time_seconds"},
    {"wok_request_decode_time_seconds", "vllm:request_decode_time_seconds"},
    {"wok_request_success_total", "vllm:request_success_total"},
    {"wok_requests_running", "vllm:num_requests_running"},
    {"wok_requests_waiting", "vllm:num_requests_waiting"},
    {"wok_kv_usage_ratio", "vllm:kv_cache_usage_perc"},
    {"wok_prompt_tokens_total", "vllm:prompt_tokens_total"},
    {"wok_generation_tokens_total", "vllm:generation_tokens_total"},
    {"wok_prefix_query_tokens_total", "vllm:prefix_cache_queries"},
    {"wok_prefix_hit_tokens_total", "vllm:prefix_cache_hits"},
    // vLLM's Python client writes its counters with _total behind them.
    {"wok_prefix_query_tokens_total", "vllm:prefix_cache_queries_total"},
    {"wok_prefix_hit_tokens_total", "vllm:prefix_cache_hits_total"},
    {"wok_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total"},
    {"wok_draft_tokens_accepted_total", "vllm:spec_decode_num_accepted_tokens_total"},
    {"wok_preemptions_total", "vllm:num_preemptions_total"},
};

}  // namespace

void append_build_info(const std::string& version, Families& families) {
  append(families, MetricType::Gauge, "wok_build_info", "Constant 1, labelled with the version",
         "version", {{version, 1}});
}

void append_engine_metrics(const EngineStats& stats, Families& families) {
  gauge(families, "wok_requests_running", "Sequences in the running batch", stats.running);
  gauge(families, "wok_requests_waiting", "Sequences waiting to be scheduled", stats.waiting);
  counter(families, "wok_steps_total", "Engine steps", stats.steps);
  gauge(families, "wok_last_step_timestamp_seconds", "When the last step ended, Unix time",
        1e-3 * static_cast<double>(stats.last_step_unix_ms));
  counter(families, "wok_prompt_tokens_total", "Prompt tokens taken in", stats.prompt_tokens);
  counter(families, "wok_generation_tokens_total", "Tokens generated", stats.generated_tokens);
  counter(families, "wok_prefix_query_tokens_total", "Prompt tokens looked up in the prefix cache",
          stats.prefix_query_tokens);
  counter(families, "wok_prefix_hit_tokens_total", "Prompt tokens found in the prefix cache",
          stats.prefix_hit_tokens);
  counter(families, "wok_draft_tokens_total", "Guessed tokens that a step verified",
          stats.drafted_tokens);
  counter(families, "wok_draft_tokens_accepted_total", "Guessed tokens that were right",
          stats.accepted_draft_tokens);
  counter(families, "wok_draft_model_tokens_total", "Guessed tokens that the draft model made",
          stats.model_drafts);
  counter(families, "wok_draft_model_tokens_accepted_total",
          "Guessed tokens of the draft model that were right", stats.model_drafts_right);
  counter(families, "wok_preemptions_total", "Sequences preempted for want of KV pages",
          stats.preemptions);
  counter(families, "wok_requests_aborted_total", "Engine requests aborted", stats.aborted);
  counter(families, "wok_requests_refused_total", "Engine requests refused on arrival",
          stats.refused);
  append(families, MetricType::Gauge, "wok_kv_pages", "KV pages by state", "state",
         {{"free", stats.pages_free}, {"cached", stats.pages_cached}, {"held", stats.pages_held}});
  gauge(families, "wok_kv_pages_total", "KV pages of the pool", stats.pages_total);
  gauge(families, "wok_kv_page_bytes", "Bytes of one KV page", stats.page_bytes);
  gauge(families, "wok_kv_page_tokens", "Tokens of one KV page", stats.page_tokens);
  // What running requests hold; cached pages are given up on demand and count as free.
  gauge(families, "wok_kv_usage_ratio", "Held pages / pool, 0 to 1",
        stats.pages_total > 0 ? 1.0 * stats.pages_held / stats.pages_total : 0.0);
  gauge(families, "wok_kv_waste_ratio", "Reserved but unused bytes / bytes of held pages",
        stats.kv_waste);
}

void append_vllm_aliases(Families& families) {
  for (const auto& [name, alias] : kAliases) {
    for (size_t i = 0; i < families.size(); ++i) {
      if (families[i].name != name) continue;
      MetricFamily copy = families[i];
      copy.name = alias;
      families.push_back(std::move(copy));
      break;
    }
  }
}

void label_with_model(const std::string& model, Families& families) {
  if (model.empty()) return;
  for (MetricFamily& family : families) {
    for (ClientMetric& metric : family.metric) metric.label.push_back({"model_name", model});
  }
}

}  // namespace wok
