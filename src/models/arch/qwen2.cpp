// Qwen 2 and 2.5, the dense models (arXiv 2407.10671): the baseline with biases on queries, keys
// and values.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "qwen2"));
  config.qkv_bias = true;
  return config;
}

}  // namespace

const Architecture kArchitecture_qwen2 = {"qwen2", read_config};

}  // namespace wok
