#include "models/architecture.h"

#include <fmt/format.h>

#include "models/encoder_config.h"

namespace wok {
namespace {

// One whole number of a model's config, required unless `fallback` is given, within bounds.
class Reader {
 public:
  Reader(const ModelFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  Result<int32_t> count(const char* name, int64_t low, int64_t high, int64_t fallback = -1) {
    const std::string key = prefix_ + name;
    WOK_TRY(found, file_.get_int(key));
    if (!found && fallback < 0) {
      return invalid(
          fmt::format("'{}' has no key '{}'; the file is no complete model", file_.path(), key));
    }
    const int64_t value = found.value_or(fallback);
    if (value < low || value > high) {
      return invalid(
          fmt::format("'{}': {} is {}, expected {} to {}", file_.path(), key, value, low, high));
    }
    return static_cast<int32_t>(value);
  }

  Result<double> number(const char* name, double low, double high, double fallback) {
    const std::string key = prefix_ + name;
    WOK_TRY(found, file_.get_float(key));
    const double value = found.value_or(fallback);
    if (!(value >= low && value <= high)) {
      return invalid(
          fmt::format("'{}': {} is {}, expected {} to {}", file_.path(), key, value, low, high));
    }
    return value;
  }

 private:
  const ModelFile& file_;
  std::string prefix_;
};

// head_count_kv may be one number or one a layer; wok runs models where all are equal.
Result<int32_t> read_kv_heads(const ModelFile& file, const std::string& arch, int32_t heads) {
  const std::string key = arch + ".attention.head_count_kv";
  WOK_TRY(counts, file.get_ints(key));
  if (counts.empty()) return heads;
  for (const int64_t count : counts) {
    if (count != counts[0]) {
      return unsupported(
          fmt::format("'{}': {} differs between layers, which wok does not run", file.path(), key));
    }
  }
  if (counts[0] < 1 || counts[0] > heads || heads % counts[0] != 0) {
    return invalid(fmt::format("'{}': {} is {}, expected a divisor of the {} heads", file.path(),
                               key, counts[0], heads));
  }
  return static_cast<int32_t>(counts[0]);
}

Status read_yarn(const ModelFile& file, const std::string& arch, double factor, DecoderConfig& c) {
  // What files may say otherwise about YaRN, and hardly any does.
  constexpr std::pair<const char*, double> kUsual[] = {
      {"attn_factor", 1},     {"yarn_attn_factor", 1}, {"yarn_ext_factor", 1},
      {"yarn_beta_fast", 32}, {"yarn_beta_slow", 1},   {"yarn_log_multiplier", 0}};
  for (const auto& [name, usual] : kUsual) {
    const std::string key = arch + ".rope.scaling." + name;
    WOK_TRY(value, file.get_float(key));
    if (value && *value != usual) {
      return unsupported(
          fmt::format("'{}': {} is {}; wok runs YaRN with {}", file.path(), key, *value, usual));
    }
  }
  Reader read(file, arch + ".");
  WOK_TRY(original, read.count("rope.scaling.original_context_length", 1, 1 << 24));
  c.yarn_factor = factor;
  c.yarn_original_tokens = original;
  return Ok{};
}

// Files of Phi-3 do not call it by its name: what they have are its tensors.
bool has_long_rope(const ModelFile& file) {
  return file.find_tensor("rope_factors_long.weight") != nullptr ||
         file.find_tensor("rope_factors_short.weight") != nullptr;
}

Status read_long_rope(const ModelFile& file, const std::string& arch, DecoderConfig& c) {
  Reader read(file, arch + ".");
  WOK_TRY(original, read.count("rope.scaling.original_context_length", 1, 1 << 24));
  WOK_TRY(magnitude, read.number("rope.scaling.attn_factor", 0.01, 100, 1));
  c.long_rope_beyond = original;
  c.rope_magnitude = static_cast<float>(magnitude);
  return Ok{};
}

Status read_rope_scaling(const ModelFile& file, const std::string& arch, DecoderConfig& c) {
  WOK_TRY(type, file.get_string(arch + ".rope.scaling.type"));
  WOK_TRY(factor, file.get_float(arch + ".rope.scaling.factor"));
  if (has_long_rope(file) || type == "longrope") return read_long_rope(file, arch, c);
  if (!type || *type == "none") return Ok{};
  if (*type != "linear" && *type != "yarn") {
    return unsupported(fmt::format(
        "'{}': RoPE scaling '{}' is not supported; wok has none, linear, yarn and longrope",
        file.path(), *type));
  }
  if (!factor || *factor < 1e-3 || *factor > 1e6) {
    return invalid(
        fmt::format("'{}': {}.rope.scaling.factor is missing or out of range", file.path(), arch));
  }
  if (*type == "yarn") return read_yarn(file, arch, *factor, c);
  c.rope_scale = 1.0 / *factor;
  return Ok{};
}

}  // namespace

std::span<const Architecture* const> architectures() {
#define WOK_LIST_ARCH(id) &kArchitecture_##id,
  static constexpr const Architecture* kAll[] = {WOK_ARCHITECTURES(WOK_LIST_ARCH)};
#undef WOK_LIST_ARCH
  return kAll;
}

Result<DecoderConfig> read_baseline(const ModelFile& file, const std::string& arch) {
  Reader read(file, arch + ".");
  DecoderConfig c;
  WOK_TRY(layers, read.count("block_count", 1, 1024));
  WOK_TRY(embedding, read.count("embedding_length", 16, 1 << 17));
  WOK_TRY(feed_forward, read.count("feed_forward_length", 16, 1 << 20));
  WOK_TRY(heads, read.count("attention.head_count", 1, 1024));
  WOK_TRY(context, read.count("context_length", 1, 1 << 24));
  WOK_TRY(kv_heads, read_kv_heads(file, arch, heads));
  WOK_TRY(head_dim, read.count("attention.key_length", 16, kMaxHeadDim, embedding / heads));
  WOK_TRY(value_dim, read.count("attention.value_length", 16, kMaxHeadDim, head_dim));
  WOK_TRY(rope_dims, read.count("rope.dimension_count", 2, head_dim, head_dim));
  WOK_TRY(epsilon, read.number("attention.layer_norm_rms_epsilon", 0, 1, 1e-5));
  WOK_TRY(base, read.number("rope.freq_base", 1, 1e12, 10000));
  // Embedding models and rerankers go by their decoder's name; their output is no logits.
  WOK_TRY(pooling, file.get_int(arch + ".pooling_type"));
  if (pooling.value_or(0) != 0) {
    return unsupported(
        fmt::format("'{}' is an embedding model or a reranker ({}.pooling_type is {}), which wok "
                    "does not run",
                    file.path(), arch, *pooling));
  }
  if (head_dim != value_dim || head_dim % 16 != 0 || rope_dims % 2 != 0) {
    return unsupported(
        fmt::format("'{}': heads of {} (keys) and {} (values), rotating {}; wok runs "
                    "equal multiples of 16",
                    file.path(), head_dim, value_dim, rope_dims));
  }
  const ModelTensor* tokens = file.find_tensor("token_embd.weight");
  if (tokens == nullptr) {
    return invalid(fmt::format(
        "'{}' has no tensor 'token_embd.weight'; the file is no complete model", file.path()));
  }
  if (tokens->shape[1] < 1 || tokens->shape[1] > (1 << 22)) {
    return invalid(fmt::format("'{}': a vocabulary of {} tokens", file.path(), tokens->shape[1]));
  }
  c.layers = layers;
  c.embedding = embedding;
  c.feed_forward = feed_forward;
  c.vocab = static_cast<int32_t>(tokens->shape[1]);
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = head_dim;
  c.context_tokens = context;
  c.norm_epsilon = static_cast<float>(epsilon);
  c.rope_dims = rope_dims;
  c.rope_base = base;
  WOK_RETURN_IF_ERROR(read_rope_scaling(file, arch, c));
  return c;
}

Status read_experts(const ModelFile& file, const std::string& arch, DecoderConfig& c,
                    int32_t shared) {
  Reader read(file, arch + ".");
  WOK_TRY(count, read.count("expert_count", 0, 4096, 0));
  if (count == 0) return Ok{};
  WOK_TRY(used, read.count("expert_used_count", 1, std::min(count, 64)));
  WOK_TRY(each, read.count("expert_feed_forward_length", 16, 1 << 20, c.feed_forward));
  WOK_TRY(for_all, read.count("expert_shared_feed_forward_length", 0, 1 << 20, shared));
  WOK_TRY(scale, read.number("expert_weights_scale", 0, 1e6, 0));
  WOK_TRY(groups, read.count("expert_group_count", 0, 4096, 0));
  WOK_TRY(gating, read.count("expert_gating_func", 0, 255, 0));
  // 3: a softmax over the chosen ones, which gpt-oss has (LLAMA_EXPERT_GATING_FUNC of GGUF).
  const bool softmax = gating <= 1 || (gating == 3 && arch == "gpt-oss");
  if ((scale != 0 && scale != 1) || groups > 1 || !softmax) {
    return unsupported(
        fmt::format("'{}' routes its experts in a way that wok does not run (weights scale {}, {} "
                    "groups, gating "
                    "function {}); wok's is a softmax over all of them",
                    file.path(), scale, groups, gating));
  }
  if (each % 16 != 0 || c.embedding % 16 != 0) {
    return unsupported(fmt::format("'{}': experts of {} by {}; wok runs multiples of 16",
                                   file.path(), c.embedding, each));
  }
  c.experts = {.count = count, .used = used, .feed_forward = each, .shared_feed_forward = for_all};
  return Ok{};
}

Result<DecoderConfig> read_decoder_config(const ModelFile& file) {
  WOK_TRY(name, file.get_string("general.architecture"));
  if (!name) {
    return invalid(fmt::format(
        "'{}' has no key 'general.architecture'; the file is no complete model", file.path()));
  }
  std::string known;
  for (const Architecture* arch : architectures()) {
    if (*name == arch->name) return arch->read_config(file);
    known += (known.empty() ? "" : ", ") + std::string(arch->name);
  }
  if (is_encoder(file)) {
    return unsupported(
        fmt::format("'{}' is an embedding model or a reranker ({}): it makes no text. `wok serve` "
                    "answers /v1/embeddings or /v1/rerank with it",
                    file.path(), *name));
  }
  return unsupported(
      fmt::format("'{}' is of architecture '{}'; wok runs {}", file.path(), *name, known));
}

}  // namespace wok
