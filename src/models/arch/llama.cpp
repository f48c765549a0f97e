// Llama and its many namesakes (SmolLM, TinyLlama, Mistral, Falcon 3 in GGUF): the baseline. GGUF
// files of this architecture have the rows of Q and K permuted, so that rotary pairs are
// neighbours. Mixtral (arXiv 2401.04088) is one of them, with experts.
#include "models/architecture.h"

namespace wok {

const Architecture kArchitecture_llama = {
    "llama", [](const ModelFile& file) -> Result<DecoderConfig> {
      WOK_TRY(config, read_baseline(file, "llama"));
      WOK_RETURN_IF_ERROR(read_experts(file, "llama", config));
      config.experts.normalize = true;
      config.rope_style = permuted_rope_style(file);
      return config;
    }};

}  // namespace wok
