// wok list
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "store/known_models.h"

namespace wok::app {
namespace {

int list_models(const Context& context, bool names_only) {
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  const Result<std::vector<store::StoredModel>> models = store->list();
  if (!models.ok()) return fail(models.error());
  if (names_only) {
    for (const store::StoredModel& model : *models) fmt::print("{}\n", model.manifest.name);
    return 0;
  }
  if (models->empty()) {
    std::string known;
    for (const store::KnownModel& model : store::known_models()) known += " " + model.name;
    fmt::print(stderr, "No model in {} yet. Get one with wok pull; there are:{}\n", store->folder(),
               known);
    return 0;
  }
  size_t width = 20;  // hubs' names are long
  for (const store::StoredModel& model : *models) {
    width = std::max(width, model.manifest.name.size());
  }
  fmt::print("{:<{}} {:>10}  {:<20} {:<20}\n", "NAME", width, "SIZE", "PULLED", "LICENSE");
  for (const store::StoredModel& model : *models) {
    const store::Manifest& m = model.manifest;
    if (model.problem.empty()) {
      fmt::print("{:<{}} {:>10}  {:<20} {:<20}\n", m.name, width, store::human_bytes(m.file_bytes),
                 m.pulled_at, m.license);
    } else {
      fmt::print("{:<{}} {:>10}  damaged: {}\n", m.name, width, "-", model.problem);
    }
  }
  return 0;
}

}  // namespace

void add_list_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("list", "List the models in the store");
  const auto names_only = std::make_shared<bool>(false);
  command->add_flag("--names", *names_only, "only the names, one a line");
  command->footer("Examples:\n  wok list\n  wok list --names");
  command->callback([&context, names_only] {
    context.action = [&context, names_only] { return list_models(context, *names_only); };
  });
}

}  // namespace wok::app
