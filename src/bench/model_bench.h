// Speed of a model's forward pass without HTTP, scheduler or sampling, over a grid of prompt
// lengths, depths, batches and threads, each row beside the roof of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/roof.h"
#include "models/model.h"

namespace wok::bench {

struct ModelBenchOptions {
  std::vector<int32_t> prompts = {512};  // tokens of a prefill; one sequence
  std::vector<int32_t> outputs = {128};  // steps of a decode
  std::vector<int32_t> depths = {0};     // positions that are in the cache already
  std::vector<int32_t> batches = {1};    // sequences that decode together
  std::vector<int32_t> threads;
  int32_t repetitions = 3;
  int32_t chunk = 512;  // tokens of one prefill step
  bool fast_prefill = false;
  const KvFormat* kv_format = &kKvFormat_f16;
};

struct ModelBenchRow {
  std::string test;  // pp512, tg128
  int32_t depth = 0, batch = 1, threads = 1;
  double tokens_per_s = 0, stddev = 0;  // over the repetitions
  // What the machine could do at most, were every weight and every key and value read once a step
  // at the speed of memory, or every product done at the multipliers' peak, whichever takes longer.
  double roof = 0;
  bool memory_bound = true;    // which of the two it is
  double bytes_per_token = 0;  // weights as the file has them, keys and values
  double roof_fraction() const { return roof > 0 ? tokens_per_s / roof : 0; }
};

struct ModelBenchReport {
  std::string model, cpu, kernels, kv_format;
  std::vector<ModelBenchRow> rows;
  std::vector<Roof> roofs;  // one a count of threads: the best seen before, between and after
};

// `seen` is called after each row. Errors: kNoMemory; kTooLarge when a row needs more positions
// than the model's context.
Result<ModelBenchReport> bench_model(const Model& model, const std::string& name,
                                     const ModelBenchOptions& options,
                                     const std::function<void(const ModelBenchRow&)>& seen);

// Steps of one row with their regions noted, after a warm-up. `test`: "pp512" or "tg128".
struct ProfileOptions {
  int32_t prompt = 512, steps = 16, depth = 0, batch = 1, threads = 1;
  bool fast_prefill = false;
  bool decode = true;  // false: one prefill of `prompt` tokens
  const KvFormat* kv_format = &kKvFormat_f16;
};
Result<StepProfile> profile_model(const Model& model, const ProfileOptions& options);

std::string model_bench_header();
std::string model_bench_line(const ModelBenchRow& row);
std::string model_bench_csv(const ModelBenchReport& report);
std::string model_bench_json(const ModelBenchReport& report);

// Regions by total time: calls, time, GB/s and GFLOP/s each.
std::string profile_table(const StepProfile& profile);
// The Chrome / Perfetto trace event format.
std::string profile_trace(const StepProfile& profile);

}  // namespace wok::bench
