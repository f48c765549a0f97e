// Metrics that are read off the engine's snapshot at scrape time, and the vLLM names of all.
#pragma once

#include <string>
#include <vector>

#include <prometheus/metric_family.h>

#include "engine/engine.h"

namespace wok {

void append_build_info(const std::string& version, std::vector<prometheus::MetricFamily>& families);
void append_engine_metrics(const EngineStats& stats,
                           std::vector<prometheus::MetricFamily>& families);
// A copy of each family that vLLM's dashboards know, under the name they know it by.
void append_vllm_aliases(std::vector<prometheus::MetricFamily>& families);
// model_name on every sample, as vLLM has it. "": none.
void label_with_model(const std::string& model, std::vector<prometheus::MetricFamily>& families);

}  // namespace wok
