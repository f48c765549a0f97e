// wok quantize: a model's weights in fewer bits.
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/interrupt.h"
#include "app/model_source.h"
#include "quantizer/quantize.h"

namespace wok::app {
namespace {

struct QuantizeCommand {
  std::string in, out, method = "q4_k_m";
  int32_t threads = 0;
  bool json = false, tensors = false;
};

std::string known_methods() {
  std::string names;
  for (const Mixture& m : mixtures()) names += (names.empty() ? "" : ", ") + std::string(m.name);
  return names;
}

// A redrawn line on a terminal: share done and time left.
class Progress {
 public:
  bool operator()(uint64_t done, uint64_t of) const {
    if (terminal_ && of > 0) {
      const double share = static_cast<double>(done) / static_cast<double>(of);
      const double passed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
      fmt::print(stderr, "\r\x1b[K{:.0f} %, {:.0f} s left", 100 * share,
                 share > 0 ? passed / share - passed : 0.0);
      if (done == of) fmt::print(stderr, "\r\x1b[K");
    }
    return !interrupt_.pending();
  }

 private:
  Interrupt interrupt_;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string report_json(const QuantizeReport& report, const std::string& method) {
  nlohmann::json out = {{"method", method},
                        {"bytes_before", report.bytes_before},
                        {"bytes_after", report.bytes_after},
                        {"bits_per_weight", report.bits_per_weight},
                        {"was_quantized", report.was_quantized},
                        {"seconds", report.seconds},
                        {"tensors", nlohmann::json::array()}};
  for (const QuantizedTensor& t : report.tensors) {
    out["tensors"].push_back({{"name", t.name},
                              {"from", t.from->name},
                              {"to", t.to->name},
                              {"kept", t.kept},
                              {"fallback", t.fallback},
                              {"weights", t.weights},
                              {"bytes", t.bytes},
                              {"relative_error", t.error}});
  }
  return out.dump(2) + "\n";
}

void print_report(const QuantizeReport& report, const QuantizeCommand& o) {
  struct Kind {
    int count = 0;
    double missed = 0, weights = 0, worst = 0;
    uint64_t bytes = 0;
    std::string worst_name;
  };
  std::map<std::string, Kind> kinds;
  int fallbacks = 0;
  for (const QuantizedTensor& t : report.tensors) {
    if (o.tensors) {
      fmt::print("{:<40} {:>8} -> {:<8} {:>12} {:>10}\n", t.name, t.from->name, t.to->name, t.bytes,
                 t.kept ? std::string("kept") : fmt::format("{:.4f}", t.error));
    }
    Kind& kind = kinds[t.to->name];
    ++kind.count;
    kind.bytes += t.bytes;
    if (t.fallback) ++fallbacks;
    if (t.kept) continue;
    kind.missed += t.error * t.error * static_cast<double>(t.weights);
    kind.weights += static_cast<double>(t.weights);
    if (t.error > kind.worst) {
      kind.worst = t.error;
      kind.worst_name = t.name;
    }
  }
  fmt::print("{:<8} {:>8} {:>10} {:>9}  {}\n", "format", "tensors", "MiB", "error", "worst");
  for (const auto& [name, kind] : kinds) {
    fmt::print("{:<8} {:>8} {:>10.1f} ", name, kind.count,
               static_cast<double>(kind.bytes) / 0x1p20);
    if (kind.weights == 0) {
      fmt::print("{:>9}\n", "kept");
    } else {
      fmt::print("{:>9.4f}  {:.4f} {}\n", std::sqrt(kind.missed / kind.weights), kind.worst,
                 kind.worst_name);
    }
  }
  fmt::print("\n{}: {:.1f} MiB, {:.2f} bits a weight, was {:.1f} MiB; {:.1f} s\n", o.out,
             static_cast<double>(report.bytes_after) / 0x1p20, report.bits_per_weight,
             static_cast<double>(report.bytes_before) / 0x1p20, report.seconds);
  if (fallbacks > 0) {
    fmt::print("{} tensors have rows that are no multiple of {}'s blocks and took a wider format\n",
               fallbacks, o.method);
  }
}

int run_quantize(const Context& context, const QuantizeCommand& o) {
  const Mixture* mixture = find_mixture(o.method);
  if (mixture == nullptr) {
    return fail(invalid(fmt::format("--method is '{}'; wok writes {}", o.method, known_methods())));
  }
  const Result<store::ResolvedModel> found = find_model(context, o.in);
  if (!found.ok()) return fail(found.error());
  const Result<ModelFile> file = ModelFile::open(found->path);
  if (!file.ok()) return fail(file.error());
  ComputePool pool(o.threads > 0 ? o.threads : usable_cpus());
  const Progress progress;
  const auto report = quantize_file(*file, o.out, *mixture, pool,
                                    [&](uint64_t done, uint64_t of) { return progress(done, of); });
  if (!report.ok() && report.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!report.ok()) return fail(report.error());
  if (report->was_quantized) {
    fmt::print(stderr, "note: {} was quantized before; what it lost then stays lost\n", found->id);
  }
  if (o.json) {
    fmt::print("{}", report_json(*report, o.method));
  } else {
    print_report(*report, o);
  }
  return 0;
}

}  // namespace

void add_quantize_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("quantize", "Write a model's weights in fewer bits");
  const auto o = std::make_shared<QuantizeCommand>();
  command->add_option("IN", o->in, "a model's name, or the path of a .gguf file")->required();
  command->add_option("OUT", o->out, "the .gguf file to write")->required();
  command->add_option("--method", o->method, known_methods())->capture_default_str();
  command->add_option("--threads", o->threads, "compute threads (default: the CPUs there are)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--tensors", o->tensors, "list every tensor");
  command->add_flag("--json", o->json, "print JSON");
  command->footer(
      "error: root mean square of what was lost, by that of the weights. What it costs in answers\n"
      "says `wok eval OUT --against IN`.\n\n"
      "Examples:\n"
      "  wok quantize model-f16.gguf model-q4_k_m.gguf\n"
      "  wok quantize model-f16.gguf model-q5_k_m.gguf --method q5_k_m --tensors");
  command->callback(
      [&context, o] { context.action = [&context, o] { return run_quantize(context, *o); }; });
}

}  // namespace wok::app
