// wok rm MODEL...
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"

namespace wok::app {
namespace {

int remove_models(const Context& context, const std::vector<std::string>& names) {
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  for (const std::string& name : names) {
    const Result<store::StoredModel> removed = store->remove(name);
    if (!removed.ok()) return fail(removed.error());
    fmt::print(stderr, "removed {}\n", removed->manifest.name);
  }
  return 0;
}

}  // namespace

void add_rm_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("rm", "Remove models from the store");
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("MODEL", *names, "names of models, as wok list shows them")->required();
  command->footer("Examples:\n  wok rm gemma3:270m\nA server that runs the model goes on with it.");
  command->callback([&context, names] {
    context.action = [&context, names] { return remove_models(context, *names); };
  });
}

}  // namespace wok::app
