// Gemma 3 (arXiv 2503.19786): QK-norm, norms after the sublayers, GELU gate, embeddings scaled by
// sqrt(embedding), five sliding-window layers with a RoPE base of 10,000 to each global one.
#include <cmath>

#include "models/architecture.h"

namespace wok {

const Architecture kArchitecture_gemma3 = {
    "gemma3", [](const ModelFile& file) -> Result<DecoderConfig> {
      WOK_TRY(config, read_baseline(file, "gemma3"));
      WOK_TRY(window, file.get_int("gemma3.attention.sliding_window"));
      WOK_TRY(softcap, file.get_float("gemma3.final_logit_softcapping"));
      if (softcap.value_or(0) != 0) {
        return unsupported("'" + file.path() + "' caps its logits, which wok does not do yet");
      }
      if (window.value_or(0) < 0 || window.value_or(0) > (1 << 24)) {
        return invalid("'" + file.path() + "': gemma3.attention.sliding_window is out of range");
      }
      config.rope_base_local = 10000;
      config.qk_norm = QkNorm::kHeads;
      config.post_norms = true;
      config.activation = GateActivation::kGelu;
      config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
      // The 27B model scales by its width per head instead of its head size.
      if (config.layers == 62) {
        config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.embedding) /
                                                  static_cast<float>(config.heads));
      }
      constexpr int32_t kPattern = 6;
      for (int32_t i = 0; i < config.layers; ++i) {
        const bool global = i % kPattern == kPattern - 1;
        config.kinds.push_back({global ? 0 : static_cast<int32_t>(window.value_or(0)), !global});
      }
      return config;
    }};

}  // namespace wok
