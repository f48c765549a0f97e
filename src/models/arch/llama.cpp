// Llama and its many namesakes (SmolLM, TinyLlama, Mistral in GGUF): the baseline. GGUF files of
// this architecture have the rows of Q and K permuted, so that rotary pairs are neighbours.
#include "models/architecture.h"

namespace wok {

const Architecture kArchitecture_llama = {
    "llama", [](const GgufFile& file) -> Result<DecoderConfig> {
      WOK_TRY(config, read_baseline(file, "llama"));
      WOK_TRY(experts, file.get_int("llama.expert_count"));
      if (experts.value_or(0) > 0) {
        return unsupported("'" + file.path() + "' is a mixture of experts, which wok does not run");
      }
      config.rope_style = RopeStyle::kInterleaved;
      return config;
    }};

}  // namespace wok
