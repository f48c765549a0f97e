#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/roof.h"

namespace wok::bench {

std::string roof_json(const Roof& roof) {
  nlohmann::ordered_json out = {{"cpu", roof.cpu}};
  for (const Bandwidth& r : roof.reads) {
    out["reads"].push_back(
        {{"level", r.level}, {"bytes", r.bytes}, {"threads", r.threads}, {"gb_per_s", r.gb_per_s}});
  }
  for (const Peak& p : roof.peaks) {
    out["peaks"].push_back({{"name", p.name},
                            {"instruction", p.instruction},
                            {"threads", p.threads},
                            {"gop_per_s", p.gop_per_s}});
  }
  return out.dump(2) + "\n";
}

std::string roof_table(const Roof& roof) {
  std::string out = fmt::format("{}\n\n{:<28} {:>7} {:>10}\n", roof.cpu, "read", "threads", "GB/s");
  for (const Bandwidth& r : roof.reads) {
    const std::string size = r.bytes >= 1u << 20 ? fmt::format("{} MiB", r.bytes >> 20)
                                                 : fmt::format("{} KiB", r.bytes >> 10);
    out += fmt::format("{:<28} {:>7} {:>10.1f}\n", fmt::format("{}, {}", r.level, size), r.threads,
                       r.gb_per_s);
  }
  out += fmt::format("\n{:<28} {:>7} {:>10}\n", "multiply and add", "threads", "Gop/s");
  for (const Peak& p : roof.peaks) {
    out += fmt::format("{:<28} {:>7} {:>10.0f}\n", fmt::format("{}, {}", p.name, p.instruction),
                       p.threads, p.gop_per_s);
  }
  return out;
}

}  // namespace wok::bench
