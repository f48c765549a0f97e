// Qwen 3, the dense models (arXiv 2505.09388): the baseline with a norm of each query and key head
// before RoPE, and heads whose size is not embedding / heads.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "qwen3"));
  config.qk_norm = QkNorm::kHeads;
  return config;
}

}  // namespace

const Architecture kArchitecture_qwen3 = {"qwen3", read_config};

}  // namespace wok
