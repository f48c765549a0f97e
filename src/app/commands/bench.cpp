// wok bench roof | model: what this machine can do, and what a model makes of it.
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_source.h"
#include "bench/model_bench.h"
#include "kernels/isa.h"

namespace wok::app {
namespace {

struct Output {
  bool json = false, csv = false;
};

void add_output_flags(CLI::App* command, Output& output) {
  CLI::Option* json = command->add_flag("--json", output.json, "print JSON");
  command->add_flag("--csv", output.csv, "print CSV")->excludes(json);
}

CLI::Option* add_list(CLI::App* command, const std::string& name, std::vector<int32_t>& values,
                      int32_t least, int32_t most, const std::string& description) {
  return command->add_option(name, values, description)
      ->delimiter(',')
      ->check(CLI::Range(least, most))
      ->type_name("N,N,…")
      ->capture_default_str();
}

constexpr int32_t kMostThreads = 1024;

void add_threads(CLI::App* command, std::vector<int32_t>& threads) {
  add_list(command, "--threads", threads, 1, kMostThreads,
           "compute threads (default: the CPUs this process may use)");
}

// What people read on a terminal should not start with a surprise.
void note_threads(const std::vector<int32_t>& threads) {
  for (const int32_t n : threads) {
    if (n > usable_cpus()) {
      fmt::print(stderr, "note: {} threads share the {} CPUs this process may use\n", n,
                 usable_cpus());
    }
  }
}

struct RoofCommand {
  std::vector<int32_t> threads;
  int32_t size_mib = 1024;
  int32_t repetitions = 5;
  bool json = false;
};

int run_roof(const Context& context, RoofCommand options) {
  if (options.threads.empty()) {
    for (int32_t n = 1; n < usable_cpus(); n *= 2) options.threads.push_back(n);
    options.threads.push_back(usable_cpus());
  }
  note_threads(options.threads);
  auto meter = bench::RoofMeter::create(static_cast<size_t>(options.size_mib) << 20);
  if (!meter.ok()) return fail(meter.error());
  bench::Roof roof;
  for (const int32_t n : options.threads) {
    ComputePool pool(n);
    const bench::Roof one = meter->measure(pool, {.repetitions = options.repetitions});
    roof.cpu = one.cpu;
    roof.reads.insert(roof.reads.end(), one.reads.begin(), one.reads.end());
    roof.peaks.insert(roof.peaks.end(), one.peaks.begin(), one.peaks.end());
  }
  fmt::print("{}", options.json ? bench::roof_json(roof) : bench::roof_table(roof));
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  const std::string path = store->folder() + "/roof.json";
  std::ofstream file(path);
  file << bench::roof_json(roof);
  file.close();
  if (!file) {
    fmt::print(stderr, "warning: {} could not be written; --cache-dir moves it\n", path);
  } else if (!options.json) {
    fmt::print("\nkept in {}\n", path);
  }
  return 0;
}

void add_roof(CLI::App* bench, Context& context) {
  CLI::App* command =
      bench->add_subcommand("roof", "Measure memory bandwidth and multiply rates of this machine");
  const auto options = std::make_shared<RoofCommand>();
  add_threads(command, options->threads);
  command->add_option("--size", options->size_mib, "memory to read, far more than the caches hold")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("MIB")
      ->capture_default_str();
  command->add_option("--repetitions", options->repetitions, "the best of so many counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print JSON");
  command->footer("Examples:\n  wok bench roof\n  wok bench roof --threads 1,2,4 --json");
  command->callback([&context, options] {
    context.action = [&context, options] { return run_roof(context, *options); };
  });
}

struct ModelCommand {
  std::string model, isa, kv_format = "f16", trace;
  bench::ModelBenchOptions bench;
  Output output;
  bool profile = false;
};

int run_profile(const Model& model, const ModelCommand& o) {
  StepProfile all;
  for (const int32_t depth : o.bench.depths) {
    std::vector<bench::ProfileOptions> runs;
    const int32_t threads = o.bench.threads.front();
    for (const int32_t n : o.bench.prompts) {
      runs.push_back({.prompt = n,
                      .depth = depth,
                      .threads = threads,
                      .fast_prefill = o.bench.fast_prefill,
                      .decode = false});
    }
    for (const int32_t batch : o.bench.batches) {
      if (o.bench.outputs.empty()) continue;
      runs.push_back({.depth = depth, .batch = batch, .threads = threads, .decode = true});
    }
    for (bench::ProfileOptions& run : runs) {
      run.kv_format = o.bench.kv_format;
      const Result<StepProfile> profile = bench::profile_model(model, run);
      if (!profile.ok()) return fail(profile.error());
      const std::string what =
          run.decode ? fmt::format("{} decode steps of {} sequences", run.steps, run.batch)
                     : fmt::format("prefill of {} tokens", run.prompt);
      fmt::print("{} at depth {}, {} threads\n{}\n", what, depth, run.threads,
                 bench::profile_table(*profile));
      all.spans.insert(all.spans.end(), profile->spans.begin(), profile->spans.end());
    }
  }
  if (o.trace.empty()) return 0;
  std::ofstream file(o.trace);
  file << bench::profile_trace(all);
  file.close();
  if (!file) return fail(io_error(fmt::format("--trace: cannot write '{}'", o.trace)));
  fmt::print("{} holds the trace: open it in ui.perfetto.dev or chrome://tracing\n", o.trace);
  return 0;
}

int run_model_bench(const Context& context, ModelCommand& o) {
  o.bench.kv_format = find_kv_format(o.kv_format);
  if (o.bench.kv_format == nullptr) {
    return fail(invalid(fmt::format("--kv-format is '{}', expected f16 or bf16", o.kv_format)));
  }
  if (o.bench.threads.empty()) o.bench.threads = {usable_cpus()};
  note_threads(o.bench.threads);
  const Result<store::ResolvedModel> found = find_model(context, o.model);
  if (!found.ok()) return fail(found.error());
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  const Result<IsaChoice> isa = choose_isa(o.isa.empty() ? environment("WOK_ISA") : o.isa);
  if (!isa.ok()) return fail(isa.error());
  Result<ModelFile> file = ModelFile::open(found->path);
  if (!file.ok()) return fail(file.error());
  ComputePool pool(usable_cpus());
  const Result<std::unique_ptr<Model>> model =
      Model::load(std::make_shared<const ModelFile>(std::move(file).value()), *isa->kernels,
                  {store->folder() + "/packs", &pool});
  if (!model.ok()) return fail(model.error());
  if (o.profile || !o.trace.empty()) return run_profile(**model, o);

  const bool table = !o.output.json && !o.output.csv;
  if (table) {
    fmt::print("{}, {}, {} kernels, {} KV\n\n{}", found->id, isa->cpu, isa->name,
               o.bench.kv_format->name, bench::model_bench_header());
  }
  const auto report = bench::bench_model(**model, found->id, o.bench, [&](const auto& row) {
    if (!table) return;
    fmt::print("{}", bench::model_bench_line(row));
    std::fflush(stdout);
  });
  if (!report.ok()) return fail(report.error());
  if (o.output.json) fmt::print("{}", bench::model_bench_json(*report));
  if (o.output.csv) fmt::print("{}", bench::model_bench_csv(*report));
  if (!table) return 0;
  fmt::print("\nm: bound by memory, c: by arithmetic. The roof:");
  for (const bench::Roof& roof : report->roofs) {
    const int32_t threads = roof.reads.front().threads;
    fmt::print(" {:.1f} GB/s", roof.read_gb_per_s("DRAM", threads));
    for (const bench::Peak& p : roof.peaks) fmt::print(", {} {:.0f} Gop/s", p.name, p.gop_per_s);
    fmt::print(" ({} threads)", threads);
  }
  fmt::print("\n");
  return 0;
}

void add_model(CLI::App* bench, Context& context) {
  CLI::App* command = bench->add_subcommand(
      "model", "Measure prefill and decode of a model, without HTTP, beside the roof");
  const auto o = std::make_shared<ModelCommand>();
  constexpr int32_t kMost = 1 << 24;
  command->add_option("MODEL", o->model,
                      "a model's name, or the path of a .gguf file or folder (default: smollm2)");
  add_list(command, "--pp", o->bench.prompts, 0, kMost, "prompt lengths to prefill; 0: none");
  add_list(command, "--tg", o->bench.outputs, 0, kMost, "steps to decode; 0: none");
  add_list(command, "--depth", o->bench.depths, 0, kMost, "positions in the cache beforehand");
  add_list(command, "--batch", o->bench.batches, 1, 4096, "sequences that decode together");
  add_threads(command, o->bench.threads);
  command->add_option("--repetitions,-r", o->bench.repetitions, "runs of each row")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--chunk", o->bench.chunk, "tokens of one prefill step")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_flag("--fast-prefill", o->bench.fast_prefill,
                    "round weights to 8 bits for prompts (docs/adr/0010)");
  command->add_option("--kv-format", o->kv_format, "f16 or bf16")->capture_default_str();
  command->add_option("--isa", o->isa, "force avx2, avxvnni, avx512, amx or reference [WOK_ISA]");
  add_output_flags(command, o->output);
  command->add_flag("--profile", o->profile, "where a step's time goes, region by region");
  command->add_option("--trace", o->trace, "write the profile as a Chrome/Perfetto trace")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  wok bench model smollm2\n"
      "  wok bench model ./model.gguf --pp 512,2048 --tg 128 --depth 0,8192 --batch 1,16 --json\n"
      "  wok bench model smollm2 --profile --trace step.json");
  command->callback([&context, o] {
    std::erase(o->bench.prompts, 0);
    std::erase(o->bench.outputs, 0);
    context.action = [&context, o] { return run_model_bench(context, *o); };
  });
}

}  // namespace

void add_bench_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("bench", "Measure this machine, or a model on it");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n  wok bench roof\n  wok bench model smollm2\n"
      "Each has its own --help.");
  add_roof(command, context);
  add_model(command, context);
}

}  // namespace wok::app
