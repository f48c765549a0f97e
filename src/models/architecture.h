// Architectures: one short file each in arch/, one name in WOK_ARCHITECTURES. Each describes itself
// as the baseline decoder (pre-norm, RoPE, GQA, gated MLP, RMSNorm) plus named deviations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"

namespace wok {

enum class RopeStyle : uint8_t { kInterleaved, kHalves };
enum class GateActivation : uint8_t { kSilu, kGelu };

struct LayerKind {
  int32_t window = 0;       // positions a token sees, itself included; 0: all of them
  bool local_rope = false;  // rotates by rope_base_local
};

struct DecoderConfig {
  int32_t layers = 0, embedding = 0, feed_forward = 0, vocab = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
  int32_t context_tokens = 0;
  float norm_epsilon = 1e-5f;
  int32_t rope_dims = 0;
  double rope_base = 10000;
  double rope_scale = 1;  // frequencies are multiplied by it (linear scaling: 1 / factor)
  RopeStyle rope_style = RopeStyle::kHalves;
  GateActivation activation = GateActivation::kSilu;
  // Deviations; the defaults are the baseline's.
  double rope_base_local = 0;
  bool qkv_bias = false;    // a bias is added to queries, keys and values
  bool qk_norm = false;     // RMSNorm of each query and key head before RoPE
  bool post_norms = false;  // RMSNorm of a sublayer's output before the residual
  float embedding_scale = 1;
  float attention_scale = 0;     // 0: 1 / sqrt(head_dim)
  std::vector<LayerKind> kinds;  // one a layer; empty: all baseline
};

struct Architecture {
  const char* name;  // general.architecture
  Result<DecoderConfig> (*read_config)(const GgufFile& file);
};

#define WOK_ARCHITECTURES(X) \
  X(llama)                   \
  X(gemma3)                  \
  X(qwen2)                   \
  X(qwen3)

#define WOK_DECLARE_ARCH(id) extern const Architecture kArchitecture_##id;
WOK_ARCHITECTURES(WOK_DECLARE_ARCH)
#undef WOK_DECLARE_ARCH

std::span<const Architecture* const> architectures();

// The config of the file's architecture, every number checked against sane bounds.
// Errors: kUnsupported names the architecture and those wok has; kInvalid names the key.
Result<DecoderConfig> read_decoder_config(const GgufFile& file);

// The keys every decoder shares, under "<arch>.": for use by the architectures' readers.
Result<DecoderConfig> read_baseline(const GgufFile& file, const std::string& arch);

}  // namespace wok
