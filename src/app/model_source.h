// From what a user typed to a model file, pulling where that is allowed.
#pragma once

#include <string>

#include "app/context.h"
#include "store/hubs/hub.h"
#include "store/known_models.h"
#include "store/pull.h"

namespace wok::app {

// A model of wok's own list, a hub's by its prefix, or Ollama's as "name:tag". Errors: kNotFound
// for a name that is none of these; kInvalid.
struct PullName {
  const store::KnownModel* known = nullptr;  // or
  store::HubRef hub;
  std::string name() const { return known != nullptr ? known->name : hub.name(); }
};
Result<PullName> parse_pull_name(const std::string& name);

// One line a known model.
std::string what_can_be_pulled();

// Pulls with a progress display; Ctrl-C cancels.
Result<store::PullOutcome> pull_with_display(const store::Store& store, const PullName& name);

enum class Missing { kIsAnError, kIsPulled };

// A name or a path; "" means the default model. With kIsPulled a name that can be pulled is pulled
// when it is not there; the default model always is.
Result<store::ResolvedModel> find_model(const Context& context, const std::string& name_or_path,
                                        Missing missing = Missing::kIsAnError);

}  // namespace wok::app
