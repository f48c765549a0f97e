// Phi-3, and Phi-4 and Phi-4-mini by its name (arXiv 2404.14219, 2412.08905, 2503.01743): the
// baseline with queries, keys and values in one tensor, gate and up in another, LongRoPE, and in
// the smaller models heads of which a part rotates. All layers see one window where there is one.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "phi3"));
  WOK_TRY(window, file.get_int("phi3.attention.sliding_window"));
  if (window.value_or(0) < 0 || window.value_or(0) > (1 << 24)) {
    return invalid("'" + file.path() + "': phi3.attention.sliding_window is out of range");
  }
  config.fused_projections = true;
  config.kinds.assign(config.layers, {.window = static_cast<int32_t>(window.value_or(0))});
  return config;
}

}  // namespace

const Architecture kArchitecture_phi3 = {"phi3", read_config};

}  // namespace wok
