#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/model_bench.h"

namespace wok::bench {

std::string model_bench_header() {
  return fmt::format("{:<8} {:>7} {:>6} {:>8} {:>11} {:>8} {:>10} {:>9} {:>11}\n", "test", "depth",
                     "batch", "threads", "tokens/s", "± sd", "roof", "of roof", "MB/token");
}

std::string model_bench_line(const ModelBenchRow& row) {
  return fmt::format(
      "{:<8} {:>7} {:>6} {:>8} {:>11.1f} {:>8.1f} {:>10.1f} {:>6.0f} %{} {:>11.3f}\n", row.test,
      row.depth, row.batch, row.threads, row.tokens_per_s, row.stddev, row.roof,
      100 * row.roof_fraction(), row.memory_bound ? "m" : "c", row.bytes_per_token / 1e6);
}

std::string model_bench_csv(const ModelBenchReport& report) {
  std::string out =
      "model,test,depth,batch,threads,tokens_per_s,stddev,roof,roof_fraction,bound,"
      "bytes_per_token\n";
  for (const ModelBenchRow& r : report.rows) {
    std::string model = report.model;
    if (model.find_first_of(",\"\n") != std::string::npos) {
      for (size_t at = 0; (at = model.find('"', at)) != std::string::npos; at += 2) {
        model.insert(at, 1, '"');
      }
      model = '"' + model + '"';
    }
    out += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{},{:.0f}\n", model, r.test,
                       r.depth, r.batch, r.threads, r.tokens_per_s, r.stddev, r.roof,
                       r.roof_fraction(), r.memory_bound ? "memory" : "compute", r.bytes_per_token);
  }
  return out;
}

std::string model_bench_json(const ModelBenchReport& report) {
  nlohmann::ordered_json out = {{"cpu", report.cpu},
                                {"kernels", report.kernels},
                                {"kv_format", report.kv_format},
                                {"roofs", nlohmann::ordered_json::array()},
                                {"rows", nlohmann::ordered_json::array()}};
  for (const Roof& roof : report.roofs) {
    out["roofs"].push_back(nlohmann::ordered_json::parse(roof_json(roof)));
  }
  for (const ModelBenchRow& r : report.rows) {
    out["rows"].push_back({{"model", report.model},
                           {"test", r.test},
                           {"depth", r.depth},
                           {"batch", r.batch},
                           {"threads", r.threads},
                           {"tokens_per_s", r.tokens_per_s},
                           {"stddev", r.stddev},
                           {"roof", r.roof},
                           {"roof_fraction", r.roof_fraction()},
                           {"bound", r.memory_bound ? "memory" : "compute"},
                           {"bytes_per_token", r.bytes_per_token}});
  }
  // A model's name is the user's: bytes that are no UTF-8 are replaced, not thrown on.
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string profile_table(const StepProfile& profile) {
  struct Sum {
    const char* name;
    int32_t calls = 0;
    double seconds = 0, bytes = 0, ops = 0;
  };
  std::vector<Sum> sums;
  double total = 0;
  for (const StepProfile::Span& span : profile.spans) {
    auto it = std::find_if(sums.begin(), sums.end(),
                           [&](const Sum& s) { return std::string_view(s.name) == span.name; });
    if (it == sums.end()) it = sums.insert(sums.end(), {span.name});
    ++it->calls;
    it->seconds += static_cast<double>(span.end_ns - span.begin_ns) / 1e9;
    it->bytes += span.bytes;
    it->ops += span.ops;
    total += static_cast<double>(span.end_ns - span.begin_ns) / 1e9;
  }
  std::sort(sums.begin(), sums.end(),
            [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
  std::string out = fmt::format("{:<20} {:>7} {:>10} {:>7} {:>8} {:>9}\n", "region", "calls", "ms",
                                "share", "GB/s", "GFLOP/s");
  for (const Sum& s : sums) {
    out += fmt::format("{:<20} {:>7} {:>10.2f} {:>5.1f} % {:>8.1f} {:>9.1f}\n", s.name, s.calls,
                       1e3 * s.seconds, 100 * s.seconds / total, s.bytes / s.seconds / 1e9,
                       s.ops / s.seconds / 1e9);
  }
  return out + fmt::format("{:<20} {:>7} {:>10.2f}\n", "all", "", 1e3 * total);
}

std::string profile_trace(const StepProfile& profile) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  const int64_t start = profile.spans.empty() ? 0 : profile.spans.front().begin_ns;
  for (const StepProfile::Span& span : profile.spans) {
    events.push_back({{"name", span.name},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(span.begin_ns - start) / 1e3},
                      {"dur", static_cast<double>(span.end_ns - span.begin_ns) / 1e3},
                      {"args", {{"bytes", span.bytes}, {"ops", span.ops}}}});
  }
  return nlohmann::ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace wok::bench
