// Qwen 1.5's and 2's mixtures of experts (arXiv 2407.10671): Qwen 2 with experts in every layer,
// and one beside them that every token has, scaled by a gate of its own.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "qwen2moe"));
  WOK_RETURN_IF_ERROR(read_experts(file, "qwen2moe", config, config.feed_forward));
  config.experts.shared_gate = true;
  config.qkv_bias = true;
  return config;
}

}  // namespace

const Architecture kArchitecture_qwen2moe = {"qwen2moe", read_config};

}  // namespace wok
