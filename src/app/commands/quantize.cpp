// wok quantize: a model's weights in fewer bits.
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/quantize_options.h"
#include "app/model_source.h"
#include "quantizer/quantize.h"

namespace wok::app {
namespace {

std::string known_methods() {
  std::string names;
  for (const Mixture& m : mixtures()) names += (names.empty() ? "" : ", ") + std::string(m.name);
  return names;
}

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

// The importance matrix that was asked for, if any.
Result<std::optional<ImportanceMatrix>> find_importance(const Context& context,
                                                        const QuantizeCommand& o,
                                                        const std::string& path,
                                                        ComputePool& pool) {
  std::optional<ImportanceMatrix> out;
  if (!o.imatrix.empty()) {
    WOK_TRY(read, ImportanceMatrix::read(o.imatrix));
    out = std::move(read);
  } else if (!o.calibration.empty()) {
    WOK_TRY(measured, measure_importance(context, o, path, pool));
    out = std::move(measured);
  }
  return out;
}

int quantize_gguf(const Context& context, QuantizeCommand o, const ModelFile& file,
                  const std::string& id) {
  if (o.method.empty()) o.method = "q4_k_m";
  const Mixture* mixture = find_mixture(o.method);
  if (mixture == nullptr) {
    return fail(
        invalid(fmt::format("--method is '{}', which wok makes of Hugging Face folders; of "
                            "a GGUF file it makes {}",
                            o.method, known_methods())));
  }
  ComputePool pool(o.threads > 0 ? o.threads : usable_cpus());
  const auto importance = find_importance(context, o, file.path(), pool);
  if (!importance.ok() && importance.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!importance.ok()) return fail(importance.error());
  const ShareProgress progress;
  const auto report =
      quantize_file(file, o.out, *mixture, *importance ? &**importance : nullptr, pool,
                    [&](uint64_t done, uint64_t of) {
                      return progress(static_cast<double>(done) / static_cast<double>(of));
                    });
  if (!report.ok() && report.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!report.ok()) return fail(report.error());
  if (report->was_quantized) {
    fmt::print(stderr, "note: {} was quantized before; what it lost then stays lost\n", id);
  }
  if (o.json) {
    fmt::print("{}", report_json(*report, o.method));
  } else {
    print_report(*report, o);
  }
  return 0;
}

int run_quantize(const Context& context, const QuantizeCommand& o) {
  if (!o.method.empty() && find_mixture(o.method) == nullptr && !is_folder_method(o.method)) {
    return fail(
        invalid(fmt::format("--method is '{}'; of GGUF files wok makes {}; of Hugging Face "
                            "folders gptq, awq, rtn, imatrix",
                            o.method, known_methods())));
  }
  const Result<store::ResolvedModel> found = find_model(context, o.in);
  if (!found.ok()) return fail(found.error());
  const Result<ModelFile> file = ModelFile::open(found->path);
  if (!file.ok()) return fail(file.error());
  if (file->is_gguf()) return quantize_gguf(context, o, *file, found->id);
  QuantizeCommand folder = o;
  if (folder.method.empty()) folder.method = "gptq";
  if (!is_folder_method(folder.method)) {
    return fail(
        invalid(fmt::format("--method is '{}'; of Hugging Face folders wok makes gptq, "
                            "awq, rtn and imatrix, and GGUF mixtures of GGUF files",
                            folder.method)));
  }
  if (!o.imatrix.empty()) {
    return fail(invalid("--imatrix is for GGUF mixtures; gptq and awq calibrate by themselves"));
  }
  return quantize_folder_command(context, folder, found->path);
}

}  // namespace

void add_quantize_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("quantize", "Write a model's weights in fewer bits");
  const auto o = std::make_shared<QuantizeCommand>();
  command->add_option("IN", o->in, "a model's name, a .gguf file, or a Hugging Face folder")
      ->required();
  command->add_option("OUT", o->out, "the .gguf file, or the folder, to write")->required();
  command
      ->add_option("--method", o->method,
                   "of a GGUF file " + known_methods() +
                       " (default: q4_k_m); of a folder gptq (default), awq, rtn, imatrix, or "
                       "several with commas, each to OUT-METHOD")
      ->type_name("METHOD");
  command
      ->add_option("--calibration", o->calibration,
                   "a text in UTF-8, or python-docs: what Debian's python3-doc holds (gptq, awq: "
                   "the default; GGUF: gives an importance matrix)")
      ->type_name("FILE");
  command->add_option("--chunks", o->chunks, "calibration: so many chunks of the text")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_option("--chunk", o->chunk_tokens, "calibration: tokens of a chunk")
      ->check(CLI::Range(8, 1 << 16))
      ->capture_default_str();
  command
      ->add_option("--imatrix", o->imatrix,
                   "GGUF: an importance matrix, from here or llama.cpp's tool (.gguf)")
      ->type_name("FILE")
      ->excludes("--calibration");
  command->add_option("--bits", o->bits, "gptq, rtn: 2, 3, 4 or 8")
      ->check(CLI::IsMember({2, 3, 4, 8}))
      ->capture_default_str();
  command->add_option("--group", o->group, "gptq, awq: columns that share a scale; -1: whole rows")
      ->check(CLI::IsMember({-1, 32, 64, 128, 256, 512, 1024}))
      ->capture_default_str();
  command->add_flag("--act-order", o->act_order,
                    "gptq: group columns of like importance (loses less; needs g_idx)");
  command->add_flag("--asymmetric", o->asymmetric, "gptq, rtn: groups with zero points");
  command->add_option("--threads", o->threads, "compute threads (default: the CPUs there are)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--tensors", o->tensors, "list every tensor");
  command->add_flag("--json", o->json, "print JSON");
  command->footer(
      "error: root mean square of what was lost, by that of the weights (output error: of the\n"
      "outputs on the calibration text). What it costs in answers says `wok eval OUT --against "
      "IN`.\n"
      "A run on a folder that was stopped goes on where it was when it is started again.\n\n"
      "Examples:\n"
      "  wok quantize model-f16.gguf model-q4_k_m.gguf\n"
      "  wok quantize model-f16.gguf model-q3_k_m.gguf --method q3_k_m --calibration text.txt\n"
      "  wok quantize ./Qwen3-0.6B ./Qwen3-0.6B-GPTQ --method gptq --calibration text.txt\n"
      "  wok quantize ./Qwen3-0.6B ./out --method gptq,awq,imatrix");
  command->callback(
      [&context, o] { context.action = [&context, o] { return run_quantize(context, *o); }; });
}

}  // namespace wok::app
