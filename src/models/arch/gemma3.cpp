// Gemma 3 (arXiv 2503.19786): QK-norm, norms after the sublayers, GELU gate, embeddings scaled by
// sqrt(embedding), five sliding-window layers with a RoPE base of 10,000 to each global one.
#include "models/arch/gemma_shared.h"

namespace wok {

const Architecture kArchitecture_gemma3 = {
    "gemma3", [](const ModelFile& file) -> Result<DecoderConfig> {
      WOK_TRY(config, read_gemma(file, "gemma3", 62));
      WOK_TRY(window, read_gemma_window(file, "gemma3", 0));
      config.rope_base_local = 10000;
      config.qk_norm = QkNorm::kHeads;
      constexpr int32_t kPattern = 6;
      for (int32_t i = 0; i < config.layers; ++i) {
        const bool global = i % kPattern == kPattern - 1;
        config.kinds.push_back({global ? 0 : window, !global});
      }
      return config;
    }};

}  // namespace wok
