// SmolLM3 (huggingface.co/blog/smollm3): the baseline, of which every fourth layer does not rotate
// queries and keys (arXiv 2501.18795); rotary pairs are neighbours.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "smollm3"));
  config.rope_style = permuted_rope_style(file);
  constexpr int32_t kPattern = 4;
  for (int32_t i = 0; i < config.layers; ++i) {
    config.kinds.push_back({.no_rope = i % kPattern == kPattern - 1});
  }
  return config;
}

}  // namespace

const Architecture kArchitecture_smollm3 = {"smollm3", read_config};

}  // namespace wok
