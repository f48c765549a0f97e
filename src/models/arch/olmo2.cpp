// OLMo 2 (arXiv 2501.00656): norms after the sublayers instead of before them, and one of all
// queries and of all keys.
#include "models/architecture.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "olmo2"));
  // OLMo 3 goes by this name, too, and most of its layers see a window only.
  WOK_TRY(window, file.get_int("olmo2.attention.sliding_window"));
  if (window.value_or(0) != 0) {
    return unsupported("'" + file.path() +
                       "' has layers with a sliding window (OLMo 3), which wok " +
                       "does not run for this architecture");
  }
  config.pre_norms = false;
  config.post_norms = true;
  config.qk_norm = QkNorm::kWhole;
  return config;
}

}  // namespace

const Architecture kArchitecture_olmo2 = {"olmo2", read_config};

}  // namespace wok
