// wok quantize of Hugging Face folders, and calibration.
#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/tokenizer_data.h"
#include "app/commands/commands.h"
#include "app/commands/quantize_options.h"
#include "app/corpus.h"
#include "kernels/isa.h"
#include "quantizer/quantize_folder.h"

namespace wok::app {
namespace {

constexpr const char* kMethods[] = {"gptq", "awq", "rtn", "imatrix"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) out.push_back(part);
  return out;
}

// A model that runs, and the calibration text in its tokens.
struct Source {
  std::unique_ptr<Model> model;
  std::string text_name;
  std::vector<int32_t> tokens;
  int32_t bos_id = -1;
};

Result<Source> open_source(const Context& context, const QuantizeCommand& o,
                           const std::string& path, ComputePool& pool) {
  // A token is four bytes or so.
  const size_t bytes = size_t{16} * static_cast<size_t>(o.chunks) * o.chunk_tokens;
  const bool corpus = o.calibration.empty() || o.calibration == "python-docs";
  WOK_TRY(text, corpus ? read_corpus("python-docs", bytes) : read_text_file(o.calibration, bytes));
  WOK_TRY(opened, ModelFile::open(path));
  auto file = std::make_shared<const ModelFile>(std::move(opened));
  WOK_TRY(data, read_tokenizer_data(*file));
  WOK_TRY(tokenizer, Tokenizer::create(std::move(data)));
  WOK_TRY(tokens, tokenizer->encode(text.text, true, false));
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(o.chunks) * o.chunk_tokens));
  WOK_TRY(isa, choose_isa(environment("WOK_ISA")));
  WOK_TRY(store, context.open_store());
  WOK_TRY(model,
          Model::load(file, *isa.kernels, {.pack_dir = store.folder() + "/packs", .pool = &pool}));
  return Source{std::move(model), text.name, std::move(tokens),
                tokenizer->add_bos() ? tokenizer->bos_id() : -1};
}

nlohmann::json report_json(const FolderReport& report, const std::string& imatrix) {
  nlohmann::json methods = nlohmann::json::array();
  for (const FolderReport::Method& m : report.methods) {
    nlohmann::json modules = nlohmann::json::array();
    for (const ModuleReport& r : m.modules) {
      modules.push_back({{"name", r.name},
                         {"kept", r.kept},
                         {"fallback", r.fallback},
                         {"weights", r.weights},
                         {"weight_error", r.weight_error},
                         {"output_error", r.output_error}});
    }
    methods.push_back({{"method", method_name(m.method)},
                       {"path", m.path},
                       {"bytes", m.bytes},
                       {"resumed_layers", m.resumed_layers},
                       {"modules", modules}});
  }
  return {{"methods", methods},
          {"imatrix", imatrix},
          {"group", report.group},
          {"calibration_tokens", report.calibration_tokens},
          {"calibration_s", report.calibration_s},
          {"seconds", report.seconds}};
}

void print_method(const FolderReport::Method& m, const QuantizeCommand& o) {
  double missed = 0, weights = 0;
  const ModuleReport* worst = nullptr;
  for (const ModuleReport& r : m.modules) {
    if (o.tensors) {
      fmt::print("{:<44} {:>8.4f} {:>8.4f}  {}\n", r.name, r.weight_error, r.output_error,
                 r.kept ? "kept: " + r.fallback : r.fallback);
    }
    if (r.kept) continue;
    missed += r.output_error * r.output_error * static_cast<double>(r.weights);
    weights += static_cast<double>(r.weights);
    if (worst == nullptr || r.output_error > worst->output_error) worst = &r;
  }
  fmt::print("{}: {}, {:.1f} MiB, output error {:.4f}", m.path, method_name(m.method),
             static_cast<double>(m.bytes) / 0x1p20, weights > 0 ? std::sqrt(missed / weights) : 0);
  if (worst != nullptr) fmt::print(", worst {:.4f} in {}", worst->output_error, worst->name);
  fmt::print("\n");
  if (m.resumed_layers > 0) fmt::print("  {} layers were there already\n", m.resumed_layers);
  for (const ModuleReport& r : m.modules) {
    if (!r.fallback.empty() && !o.tensors) {
      fmt::print("  {} {}: {}\n", r.name, r.kept ? "kept" : "rounded to nearest", r.fallback);
    }
  }
}

Result<FolderJob> read_job(const QuantizeCommand& o, const std::string& path) {
  FolderJob job;
  job.folder = path;
  const std::vector<std::string> methods = split(o.method);
  for (const std::string& method : methods) {
    // One output has the name that was given; of several each has its method behind it.
    const std::string out = methods.size() == 1 ? o.out : o.out + "-" + method;
    if (method == "imatrix") {
      job.imatrix = out.ends_with(".gguf") ? out : out + ".gguf";
    } else {
      job.outputs.push_back({method == "gptq"  ? FolderMethod::kGptq
                             : method == "awq" ? FolderMethod::kAwq
                                               : FolderMethod::kRound,
                             out});
    }
  }
  job.options = {
      .bits = o.bits, .group = o.group, .symmetric = !o.asymmetric, .act_order = o.act_order};
  job.chunk_tokens = o.chunk_tokens;
  return job;
}

}  // namespace

bool is_folder_method(const std::string& method) {
  const std::vector<std::string> parts = split(method);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::find(std::begin(kMethods), std::end(kMethods), part) != std::end(kMethods);
  });
}

int quantize_folder_command(const Context& context, const QuantizeCommand& o,
                            const std::string& path) {
  ComputePool pool(o.threads > 0 ? o.threads : usable_cpus());
  Result<FolderJob> job = read_job(o, path);
  if (!job.ok()) return fail(job.error());
  Result<Source> source = open_source(context, o, path, pool);
  if (!source.ok()) return fail(source.error());
  job->model = source->model.get();
  job->text = source->text_name;
  job->tokens = std::move(source->tokens);
  job->bos_id = source->bos_id;
  const ShareProgress progress;
  const auto report = quantize_folder(*job, pool, [&](double share) { return progress(share); });
  if (!report.ok() && report.error().kind == ErrorKind::kCancelled) {
    fmt::print(stderr,
               "\nThe layers that are done are kept; the same command goes on from there.\n");
    return kExitInterrupted;
  }
  if (!report.ok()) return fail(report.error());
  if (o.json) {
    fmt::print("{}\n", report_json(*report, job->imatrix).dump(2));
    return 0;
  }
  for (const FolderReport::Method& m : report->methods) print_method(m, o);
  if (!job->imatrix.empty()) fmt::print("{}: importance matrix\n", job->imatrix);
  fmt::print("{} tokens of {}; {:.1f} s, of which {:.1f} s in calibration\n",
             report->calibration_tokens, job->text, report->seconds, report->calibration_s);
  if (!job->outputs.empty() && report->group != o.group) {
    fmt::print("groups of {} columns: {} does not divide all rows\n", report->group, o.group);
  }
  return 0;
}

Result<ImportanceMatrix> measure_importance(const Context& context, const QuantizeCommand& o,
                                            const std::string& path, ComputePool& pool) {
  WOK_TRY(source, open_source(context, o, path, pool));
  WOK_TRY(calibration, Calibration::create(*source.model, std::move(source.tokens), o.chunk_tokens,
                                           source.bos_id, pool));
  const ShareProgress progress;
  return ImportanceMatrix::measure(calibration, [&](double share) { return progress(share); });
}

}  // namespace wok::app
