// Granite 3, the dense models (github.com/ibm-granite): the baseline with multipliers of
// embeddings, sublayers, attention and logits; rotary pairs are neighbours.
#include <fmt/format.h>

#include "models/arch/granite_scales.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "granite"));
  WOK_RETURN_IF_ERROR(read_granite_scales(file, "granite", config));
  return config;
}

}  // namespace

Status read_granite_scales(const ModelFile& file, const std::string& arch, DecoderConfig& config) {
  float divisor = 1;
  const struct {
    const char* name;
    float* to;
  } kScales[] = {{"embedding_scale", &config.embedding_scale},
                 {"residual_scale", &config.residual_scale},
                 {"attention.scale", &config.attention_scale},
                 {"logit_scale", &divisor}};
  for (const auto& [name, to] : kScales) {
    const std::string key = arch + "." + name;
    WOK_TRY(value, file.get_float(key));
    if (!value) continue;
    if (!(*value > 1e-6 && *value < 1e6)) {
      return invalid(fmt::format("'{}': {} is {}", file.path(), key, *value));
    }
    *to = static_cast<float>(*value);
  }
  config.logit_scale = 1 / divisor;
  config.rope_style = permuted_rope_style(file);
  return Ok{};
}

const Architecture kArchitecture_granite = {"granite", read_config};

}  // namespace wok
