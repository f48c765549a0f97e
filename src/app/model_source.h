// From what a user typed to a model file, pulling where that is allowed.
#pragma once

#include <string>

#include "app/context.h"
#include "store/known_models.h"
#include "store/pull.h"

namespace wok::app {

// Pulls with a progress display; Ctrl-C cancels.
Result<store::PullOutcome> pull_with_display(const store::Store& store,
                                             const store::KnownModel& model);

// "" means the default model, which is pulled when it is not there yet. Anything else has to be
// there: a name or a path.
Result<store::ResolvedModel> find_model(const Context& context, const std::string& name_or_path);

}  // namespace wok::app
