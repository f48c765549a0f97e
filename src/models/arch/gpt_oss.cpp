// GPT-OSS (arXiv 2508.10925): experts with biases and a clamped gate, sinks in attention's softmax,
// a window in every other layer, YaRN with a ramp that begins and ends between pairs.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "gpt-oss"));
  WOK_RETURN_IF_ERROR(read_experts(file, "gpt-oss", config));
  WOK_TRY(window, file.get_int("gpt-oss.attention.sliding_window"));
  if (window.value_or(0) < 0 || window.value_or(0) > (1 << 24)) {
    return invalid("'" + file.path() + "': gpt-oss.attention.sliding_window is out of range");
  }
  if (config.experts.count == 0) {
    return invalid("'" + file.path() + "' has no key 'gpt-oss.expert_count'");
  }
  config.qkv_bias = true;
  config.output_bias = true;
  config.attention_sinks = true;
  config.yarn_whole_pairs = false;
  config.activation = GateActivation::kClampedGlu;
  config.feed_forward_norm = "post_attention_norm";
  config.experts.biases = true;
  // A softmax over the chosen ones only, which is that over all of them made to add up to 1.
  config.experts.normalize = true;
  for (int32_t i = 0; i < config.layers; ++i) {
    config.kinds.push_back({.window = i % 2 == 0 ? static_cast<int32_t>(window.value_or(0)) : 0});
  }
  return config;
}

}  // namespace

const Architecture kArchitecture_gpt_oss = {"gpt-oss", read_config};

}  // namespace wok
