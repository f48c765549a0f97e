// OLMoE (arXiv 2409.02060): experts in every layer, and a norm of all queries and of all keys.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "olmoe"));
  WOK_RETURN_IF_ERROR(read_experts(file, "olmoe", config));
  config.qk_norm = QkNorm::kWhole;
  return config;
}

}  // namespace

const Architecture kArchitecture_olmoe = {"olmoe", read_config};

}  // namespace wok
