// Encoders and sentence-transformers' modules in Hugging Face folders, in the terms of GGUF's keys
// and names.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.h"
#include "formats/hf_names.h"

namespace wok {

// Keys beside GGUF's: vectors have the length 1 (a whole number, 0 or 1); the texts are lower-cased
// before the tokenizer sees them (likewise).
inline constexpr const char* kNormalizeKey = "wok.embedding.normalize";
inline constexpr const char* kLowercaseKey = "wok.embedding.lowercase";

// GGUF's numbers of what is made of a sequence's states (<arch>.pooling_type).
enum class PoolingKey : int64_t { kNone = 0, kMean = 1, kCls = 2, kLast = 3, kRank = 4 };

bool is_hf_encoder(const std::string& model_type);
// The model types of encoders, for messages.
std::string hf_encoder_types();

// As read_hf_config, of an encoder's config.json.
Result<HfConfig> read_hf_encoder(const nlohmann::json& config, const std::string& folder);

// As hf_places, of an encoder's module.
std::vector<HfPlace> hf_encoder_places(std::string_view module, const HfConfig& config);

// A JSON file of the folder; nothing where it is missing.
using ReadHfJson = std::function<Result<std::optional<nlohmann::json>>(const std::string& name)>;

// What modules.json says is done with the states, and how long a text may be, into the config's
// keys; for decoders, too (Qwen3-Embedding). Errors: kUnsupported names a module or a setting.
Status read_sentence_modules(const ReadHfJson& read, const std::string& folder, HfConfig& config);

}  // namespace wok
