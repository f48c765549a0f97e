// The text side and the engine of a model that makes vectors or scores.
#pragma once

#include <memory>

#include "api/served_model.h"
#include "formats/model_file.h"

namespace wok {

// The tokenizer of an encoder. Errors: kUnsupported names a tokenizer that wok does not make.
Result<std::unique_ptr<WholeTokenizer>> read_whole_tokenizer(const ModelFile& file);

// Fills in what load_model leaves open. Errors: kInvalid for options that say nothing here.
Status load_embedder(const std::shared_ptr<const ModelFile>& file, const LoadOptions& options,
                     ServedModel& served);

}  // namespace wok
