// Gemma, the first (arXiv 2403.08295): the baseline with a GELU gate and embeddings scaled by
// sqrt(embedding).
#include <cmath>

#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "gemma"));
  config.activation = GateActivation::kGelu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
  return config;
}

}  // namespace

const Architecture kArchitecture_gemma = {"gemma", read_config};

}  // namespace wok
