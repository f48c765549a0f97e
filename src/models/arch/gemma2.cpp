// Gemma 2 (arXiv 2408.00118): norms before and after the sublayers, GELU gate, embeddings scaled by
// sqrt(embedding), capped attention scores and logits, a sliding window in every other layer.
#include <fmt/format.h>

#include <cmath>

#include "models/arch/gemma_shared.h"

namespace wok {
namespace {

// A positive number of the file, or `usual`.
Result<float> read_positive(const ModelFile& file, const std::string& key, double usual) {
  WOK_TRY(found, file.get_float(key));
  const double value = found.value_or(usual);
  if (!(value >= 0 && value < 1e6)) {
    return invalid(fmt::format("'{}': {} is {}, expected 0 to 1e6", file.path(), key, value));
  }
  return static_cast<float>(value);
}

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_gemma(file, "gemma2", 46));
  WOK_TRY(window, read_gemma_window(file, "gemma2", 4096));
  // The first files of this architecture do not state their caps; all its models have these.
  WOK_TRY(scores, read_positive(file, "gemma2.attn_logit_softcapping", file.is_gguf() ? 50 : 0));
  WOK_TRY(logits, read_positive(file, "gemma2.final_logit_softcapping", file.is_gguf() ? 30 : 0));
  config.attention_cap = scores;
  config.logit_cap = logits;
  for (int32_t i = 0; i < config.layers; ++i) {
    config.kinds.push_back({.window = i % 2 == 0 ? window : 0});
  }
  return config;
}

}  // namespace

Result<DecoderConfig> read_gemma(const ModelFile& file, const std::string& arch,
                                 int32_t layers_of_27b) {
  WOK_TRY(config, read_baseline(file, arch));
  WOK_TRY(cap, read_positive(file, arch + ".final_logit_softcapping", 0));
  WOK_TRY(scale, read_positive(file, arch + ".attention.scale", 0));
  config.post_norms = true;
  config.activation = GateActivation::kGelu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
  config.logit_cap = cap;
  config.attention_scale = scale;
  if (scale == 0 && config.layers == layers_of_27b) {
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.embedding) / static_cast<float>(config.heads));
  }
  return config;
}

Result<int32_t> read_gemma_window(const ModelFile& file, const std::string& arch, int32_t usual) {
  WOK_TRY(window, file.get_int(arch + ".attention.sliding_window"));
  const int64_t positions = window.value_or(usual);
  if (positions < 0 || positions > (1 << 24)) {
    return invalid("'" + file.path() + "': " + arch + ".attention.sliding_window is out of range");
  }
  return static_cast<int32_t>(positions);
}

const Architecture kArchitecture_gemma2 = {"gemma2", read_config};

}  // namespace wok
