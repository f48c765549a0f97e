// wok compile MODEL: lays the weights out for this CPU now, so that no start has to.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_source.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "models/model.h"

namespace wok::app {
namespace {

struct CompileOptions {
  std::string model, isa;
  int32_t threads = 0;
  bool force = false, check = false;
};

void print_result(const std::string& name, const IsaChoice& isa, const PackMemory& packed,
                  double seconds, bool check) {
  const std::string what =
      fmt::format("for {} kernels: {}", isa.name, store::human_bytes(packed.bytes()));
  if (check) {
    fmt::print(stderr, "{} is compiled {}, and every byte is as it was written\n", name, what);
  } else if (packed.from_file()) {
    fmt::print(stderr, "{} is compiled already {}\n", name, what);
  } else {
    fmt::print(stderr, "compiled {} {} in {:.2f} s: laid out at {:.2f} GB/s, kept in {:.2f} s\n",
               name, what, seconds, static_cast<double>(packed.bytes()) / packed.packing_s() * 1e-9,
               seconds - packed.packing_s());
  }
  fmt::print("{}\n", packed.path());
}

int compile(const Context& context, const CompileOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Result<IsaChoice> isa = choose_isa(options.isa);
  if (!isa.ok()) return fail(isa.error());
  const Result<store::ResolvedModel> found = find_model(context, options.model);
  if (!found.ok()) return fail(found.error());
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  Result<ModelFile> file = ModelFile::open(found->path);
  if (!file.ok()) return fail(file.error());

  const auto begin = Clock::now();
  ComputePool pool(options.threads > 0 ? options.threads : usable_cpus());
  const PackMode mode = options.check   ? PackMode::kVerify
                        : options.force ? PackMode::kRebuild
                                        : PackMode::kUse;
  const auto model =
      Model::load(std::make_shared<const ModelFile>(std::move(file).value()), *isa->kernels,
                  {.pack_dir = store->packs_folder(), .pool = &pool, .pack_mode = mode});
  if (!model.ok()) {
    if (model.error().kind == ErrorKind::kNotFound) {
      return fail(
          not_found(fmt::format("{} is not compiled for {} kernels yet; do it with: wok "
                                "compile {}",
                                found->id, isa->name, options.model)));
    }
    return fail(model.error());
  }
  const PackMemory& packed = model.value()->packed();
  if (packed.bytes() == 0) {
    fmt::print(stderr, "{}: the {} kernels read the model's file as it is; nothing to compile\n",
               found->id, isa->name);
    return 0;
  }
  if (!packed.not_kept().empty()) return fail(io_error(packed.not_kept()));
  print_result(found->id, *isa, packed, std::chrono::duration<double>(Clock::now() - begin).count(),
               options.check);
  return 0;
}

}  // namespace

void add_compile_command(CLI::App& root, Context& context) {
  CLI::App* command =
      root.add_subcommand("compile", "Lay a model's weights out for this CPU, ahead of time");
  const auto options = std::make_shared<CompileOptions>();
  command
      ->add_option("MODEL", options->model, "a model's name, or the path of a .gguf file or folder")
      ->required();
  CLI::Option* force =
      command->add_flag("--force", options->force, "do it again, whatever is there");
  command
      ->add_flag("--check", options->check,
                 "only read what is there through, and compare it with its checksum")
      ->excludes(force);
  context.setting(command, command->add_option("--isa", options->isa,
                                               "for avx2, avx512, amx or reference kernels"));
  context.setting(
      command,
      command->add_option("--threads", options->threads, "0 = the CPUs this process may use")
          ->check(CLI::Range(0, 1024)));
  command->footer(
      "Examples:\n"
      "  wok compile smollm2\n"
      "  wok compile ./model.gguf --force\n"
      "  WOK_ISA=avx2 wok compile gemma3:270m\n"
      "  wok compile smollm2 --check\n"
      "The first start of a model does the same. The file's path is printed on stdout.");
  command->callback([&context, options] {
    context.action = [&context, options] { return compile(context, *options); };
  });
}

}  // namespace wok::app
