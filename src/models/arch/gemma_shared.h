// What Google's Gemma 2 and 3 have in common.
#pragma once

#include <string>

#include "models/architecture.h"

namespace wok {

// The baseline with norms after the sublayers too, a GELU gate, embeddings scaled by
// sqrt(embedding), and the caps and the scale of attention that the file states.
// `layers_of_27b`: the largest model scales queries by its width per head instead of its head size;
// GGUF files know it by its layers.
Result<DecoderConfig> read_gemma(const ModelFile& file, const std::string& arch,
                                 int32_t layers_of_27b);

// Positions that a local layer sees; `usual` where the file does not say.
// Errors: kInvalid for one that is out of range.
Result<int32_t> read_gemma_window(const ModelFile& file, const std::string& arch, int32_t usual);

}  // namespace wok
