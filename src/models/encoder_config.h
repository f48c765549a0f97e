// BERT and its kin (arXiv 1810.04805): encoders, whose tokens see all others. They are described
// apart from decoders, with which they share kernels and little else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/model_file.h"

namespace wok {

enum class Pooling : uint8_t {
  kMean,  // of all tokens' states
  kCls,   // the first token's
  kLast,  // the last token's
  kRank,  // a classifier of one label on the first token's
};
const char* pooling_name(Pooling pooling);

// <architecture>.pooling_type; nothing where the key is missing or says that there is none. Errors:
// kUnsupported for a number that wok does not know.
Result<std::optional<Pooling>> read_pooling(const ModelFile& file, const std::string& architecture);
// Whether vectors get the length 1. GGUF has no key for it, and its programs always do.
Result<bool> read_normalize(const ModelFile& file);

struct EncoderConfig {
  int32_t layers = 0, embedding = 0, feed_forward = 0, vocab = 0;
  int32_t heads = 0, head_dim = 0;
  int32_t context_tokens = 0;
  int32_t token_types = 0;
  float norm_epsilon = 1e-12f;
  Pooling pooling = Pooling::kMean;
  bool normalize = true;
};

bool is_encoder(const ModelFile& file);

// Every number checked against sane bounds. Errors: kInvalid names the key, kUnsupported the
// setting.
Result<EncoderConfig> read_encoder_config(const ModelFile& file);

}  // namespace wok
