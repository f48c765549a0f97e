#include "app/model_source.h"

#include <unistd.h>

#include <ctime>

#include <fmt/format.h>

#include "app/interrupt.h"
#include "app/progress.h"

namespace wok::app {

Result<store::PullOutcome> pull_with_display(const store::Store& store,
                                             const store::KnownModel& model) {
  const Interrupt interrupt;
  PullDisplay display(model.name, ::isatty(STDERR_FILENO) == 1);
  store::PullOptions options;
  options.pip = environment("WOK_PIP");
  options.path = environment("PATH");
  options.now_unix_s = std::time(nullptr);
  options.on_progress = [&](const store::PullProgress& progress) { display.show(progress); };
  options.cancelled = &interrupt.flag();
  return store::pull(store, model, options);
}

Result<store::ResolvedModel> find_model(const Context& context, const std::string& name_or_path) {
  WOK_TRY(store, context.open_store());
  if (!name_or_path.empty()) return store.resolve(name_or_path);
  const std::string name(store::kDefaultModel);
  if (store.find(name).ok()) return store.resolve(name);
  const store::KnownModel* model = store::find_known_model(name);
  WOK_CHECK(model != nullptr, "the default model is in the list");
  fmt::print(stderr, "No model named: fetching the default, {} ({}), into {}.\n", model->name,
             store::human_bytes(model->download_bytes), store.folder());
  WOK_TRY(outcome, pull_with_display(store, *model));
  return store::ResolvedModel{.id = outcome.model.manifest.name, .path = outcome.model.path};
}

}  // namespace wok::app
