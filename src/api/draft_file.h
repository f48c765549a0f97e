// The file of a smaller model that guesses for another one (engine/draft_model.h).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/model_file.h"
#include "text/tokenizer.h"

namespace wok {

// Opens the draft model at `path` for the model at `target_path`, whose tokenizer is `target`.
// Errors: those of ModelFile::open and read_tokenizer_data; kInvalid names the first token that is
// another in the two vocabularies (one may be longer).
Result<std::shared_ptr<const ModelFile>> open_draft_file(const std::string& path,
                                                         const std::string& target_path,
                                                         const TokenizerData& target);

}  // namespace wok
