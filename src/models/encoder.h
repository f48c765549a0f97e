// An encoder with its workspace: token sequences to vectors or scores (embedding_model.h).
#pragma once

#include <memory>

#include "models/embedding_model.h"
#include "models/encoder_weights.h"
#include "models/pack_weights.h"

namespace wok {

// options.pool is used for loading and computing, and must outlive the model.
// Errors: an incomplete or unsupported model; those of pack_weights.
Result<std::unique_ptr<EmbeddingModel>> load_encoder(std::shared_ptr<const ModelFile> file,
                                                     const KernelTable& kernels,
                                                     const ModelOptions& options);

}  // namespace wok
