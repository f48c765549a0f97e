#include "app/model_source.h"

#include <unistd.h>

#include <ctime>

#include <fmt/format.h>

#include "app/interrupt.h"
#include "app/progress.h"
#include "store/names.h"

namespace wok::app {

Result<PullName> parse_pull_name(const std::string& name) {
  if (const store::KnownModel* known = store::find_known_model(name); known != nullptr) {
    return PullName{.known = known, .hub = {}};
  }
  if (!store::has_hub_prefix(name) && !store::valid_plain_name(name)) {
    WOK_TRY(canonical, store::canonical_name(name));  // says what a name is
  }
  if (!store::has_hub_prefix(name) && name.find(':') == std::string::npos) {
    return not_found(fmt::format(
        "'{0}' is not a model wok can pull by that name alone. There are:\n{1}"
        "From hubs: hf:org/name, ms:org/name, and with a tag Ollama's, as {0}:latest. A .gguf file "
        "needs no pull: give its path.",
        name, what_can_be_pulled()));
  }
  WOK_TRY(ref, store::parse_hub_ref(name));
  return PullName{.known = nullptr, .hub = std::move(ref)};
}

std::string what_can_be_pulled() {
  std::string text;
  for (const store::KnownModel& model : store::known_models()) {
    text += fmt::format("  {:<14} {} ({}, {})\n", model.name, model.title,
                        store::human_bytes(model.file_bytes), model.license);
  }
  return text;
}

Result<store::PullOutcome> pull_with_display(const store::Store& store, const PullName& name) {
  const Interrupt interrupt;
  PullDisplay display(name.name(), ::isatty(STDERR_FILENO) == 1);
  store::PullOptions options;
  options.pip = environment("WOK_PIP");
  options.path = environment("PATH");
  options.now_unix_s = std::time(nullptr);
  options.on_progress = [&](const store::PullProgress& progress) { display.show(progress); };
  options.on_note = [&](const std::string& text) { display.note(text); };
  options.cancelled = &interrupt.flag();
  options.hubs = {.hf_endpoint = environment("HF_ENDPOINT"),
                  .hf_token = environment("HF_TOKEN"),
                  .ms_endpoint = environment("MODELSCOPE_ENDPOINT"),
                  .ms_token = environment("MODELSCOPE_API_TOKEN"),
                  .ollama_registry = environment("OLLAMA_REGISTRY")};
  // curl, the program, looks for them there; its library leaves that to whoever uses it.
  options.download.http.ca_file = environment("CURL_CA_BUNDLE");
  if (options.download.http.ca_file.empty()) {
    options.download.http.ca_file = environment("SSL_CERT_FILE");
  }
  options.download.http.ca_folder = environment("SSL_CERT_DIR");
  if (name.known != nullptr) return store::pull(store, *name.known, options);
  return store::pull(store, name.hub, options);
}

Result<store::ResolvedModel> find_model(const Context& context, const std::string& name_or_path,
                                        Missing missing) {
  WOK_TRY(store, context.open_store());
  const std::string name = name_or_path.empty() ? std::string(store::kDefaultModel) : name_or_path;
  Result<store::ResolvedModel> found = store.resolve(name);
  const bool pulls = missing == Missing::kIsPulled || name_or_path.empty();
  if (found.ok() || !pulls || store::looks_like_path(name)) return found;
  // Not for one that is there but damaged: its error says what to do.
  if (found.error().kind != ErrorKind::kNotFound && !name_or_path.empty()) return found;
  const Result<PullName> wanted = parse_pull_name(name);
  if (!wanted.ok()) return found;
  fmt::print(stderr, "{} is not here yet: fetching it into {}.\n", wanted->name(), store.folder());
  WOK_TRY(outcome, pull_with_display(store, *wanted));
  return store::ResolvedModel{.id = outcome.model.manifest.name, .path = outcome.model.path};
}

}  // namespace wok::app
