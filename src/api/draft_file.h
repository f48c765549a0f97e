// The smaller model that guesses for another one (engine/draft_model.h).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "models/model.h"

namespace wok {

// Loads the file at `path` as `target`'s draft model. Errors: those of a model that cannot be
// loaded; kInvalid names the first token that is another in the two vocabularies (one may be
// longer).
Result<std::unique_ptr<Model>> load_draft_model(const std::string& path, const GgufFile& target,
                                                const KernelTable& kernels,
                                                const ModelOptions& options);

}  // namespace wok
