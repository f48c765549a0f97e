// A Hugging Face folder (config.json, safetensors in one file or in shards, tokenizer.json) as a
// ModelFile: keys and tensors get the names that GGUF gives them, quantized modules sources of
// rows.
#pragma once

#include <string>

#include "formats/model_file.h"

namespace wok {

// Keys beside GGUF's: the folder's own JSON texts, for the text side.
inline constexpr const char* kHfTokenizerKey = "tokenizer.huggingface.json";
inline constexpr const char* kHfTokenizerConfigKey = "tokenizer.huggingface.config";
inline constexpr const char* kHfGenerationConfigKey = "tokenizer.huggingface.generation";

// Errors: kNotFound names a file that is missing; kInvalid and kUnsupported as for other files.
Result<ModelFile> open_hf_folder(const std::string& path);

}  // namespace wok
