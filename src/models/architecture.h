// Architectures: one short file each in arch/, one name in WOK_ARCHITECTURES. Each describes itself
// as the baseline decoder (pre-norm, RoPE, GQA, gated MLP, RMSNorm) plus named deviations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"

namespace wok {

enum class RopeStyle : uint8_t { kInterleaved, kHalves };
enum class GateActivation : uint8_t { kSilu, kGelu, kClampedGlu };

enum class QkNorm : uint8_t { kNone, kHeads, kWhole };

struct LayerKind {
  int32_t window = 0;       // positions a token sees, itself included; 0: all of them
  bool local_rope = false;  // rotates by rope_base_local
  bool no_rope = false;     // does not rotate
};

// A mixture of experts in place of the gated MLP.
struct ExpertConfig {
  int32_t count = 0;  // 0: none
  int32_t used = 0;
  int32_t feed_forward = 0;         // of one expert
  int32_t shared_feed_forward = 0;  // of the expert that every token has; 0: none
  bool shared_gate = false;         // its output is scaled by a sigmoid of its own
  bool normalize = false;           // the chosen experts' weights add up to 1
  bool biases = false;              // added by the router and by each expert's matrices
};

struct DecoderConfig {
  int32_t layers = 0, embedding = 0, feed_forward = 0, vocab = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
  int32_t context_tokens = 0;
  float norm_epsilon = 1e-5f;
  int32_t rope_dims = 0;
  double rope_base = 10000;
  double rope_scale = 1;   // frequencies are multiplied by it (linear scaling: 1 / factor)
  double yarn_factor = 0;  // the context is stretched so many times by YaRN; 0: it is not
  int32_t yarn_original_tokens = 0;
  bool yarn_whole_pairs = true;  // its ramp begins and ends at whole pairs
  // LongRoPE: a context of more tokens than these takes the long divisors of frequencies, for all
  // its positions; others take the short ones. 0: no LongRoPE.
  int32_t long_rope_beyond = 0;
  float rope_magnitude = 1;   // of LongRoPE: what rotated values are multiplied by
  int32_t served_tokens = 0;  // the context that is asked of the model; 0: all of context_tokens
  RopeStyle rope_style = RopeStyle::kHalves;
  GateActivation activation = GateActivation::kSilu;
  // Deviations; the defaults are the baseline's.
  double rope_base_local = 0;
  bool qkv_bias = false;           // a bias is added to queries, keys and values
  bool output_bias = false;        // and to what attention gives
  bool attention_sinks = false;    // a learned score a head takes part in every softmax
  QkNorm qk_norm = QkNorm::kNone;  // RMSNorm of queries and keys before RoPE: by heads, or whole
  bool fused_projections = false;  // attn_qkv is queries, keys, values; ffn_up is gate and up
  bool pre_norms = true;           // RMSNorm of a sublayer's input
  bool post_norms = false;         // RMSNorm of a sublayer's output before the residual
  ExpertConfig experts;
  float embedding_scale = 1;
  float residual_scale = 1;  // of a sublayer's output
  float logit_scale = 1;
  float attention_scale = 0;  // 0: 1 / sqrt(head_dim)
  float attention_cap = 0;    // scores become cap * tanh(score / cap); 0: they stay
  float logit_cap = 0;        // the same of logits
  const char* feed_forward_norm = "ffn_norm";  // what files call it
  std::vector<LayerKind> kinds;                // one a layer; empty: all baseline
};

struct Architecture {
  const char* name;  // general.architecture
  Result<DecoderConfig> (*read_config)(const ModelFile& file);
};

#define WOK_ARCHITECTURES(X) \
  X(llama)                   \
  X(gemma)                   \
  X(gemma2)                  \
  X(gemma3)                  \
  X(qwen2)                   \
  X(qwen2moe)                \
  X(qwen3)                   \
  X(qwen3moe)                \
  X(olmo2)                   \
  X(olmoe)                   \
  X(granite)                 \
  X(granitemoe)              \
  X(smollm3)                 \
  X(phi3)                    \
  X(gpt_oss)

#define WOK_DECLARE_ARCH(id) extern const Architecture kArchitecture_##id;
WOK_ARCHITECTURES(WOK_DECLARE_ARCH)
#undef WOK_DECLARE_ARCH

std::span<const Architecture* const> architectures();

// The config of the file's architecture, every number checked against sane bounds.
// Errors: kUnsupported names the architecture and those wok has; kInvalid names the key.
Result<DecoderConfig> read_decoder_config(const ModelFile& file);

// The keys every decoder shares, under "<arch>.": for use by the architectures' readers.
Result<DecoderConfig> read_baseline(const ModelFile& file, const std::string& arch);

// Of architectures of which GGUF's converter permutes the rows of Q and K, so that rotary pairs are
// neighbours; other files have them as they were trained.
inline RopeStyle permuted_rope_style(const ModelFile& file) {
  return file.is_gguf() ? RopeStyle::kInterleaved : RopeStyle::kHalves;
}

// The keys of a mixture of experts, for a config of read_baseline; count stays 0 where there are
// none. shared: the width of an expert that all tokens have, where the file does not say.
Status read_experts(const ModelFile& file, const std::string& arch, DecoderConfig& config,
                    int32_t shared = 0);

}  // namespace wok
