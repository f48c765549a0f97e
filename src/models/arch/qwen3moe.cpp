// Qwen 3's mixtures of experts (arXiv 2505.09388): Qwen 3 with experts in every layer.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "qwen3moe"));
  WOK_RETURN_IF_ERROR(read_experts(file, "qwen3moe", config));
  config.experts.normalize = true;
  config.qk_norm = QkNorm::kHeads;
  return config;
}

}  // namespace

const Architecture kArchitecture_qwen3moe = {"qwen3moe", read_config};

}  // namespace wok
