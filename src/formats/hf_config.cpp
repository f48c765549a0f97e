#include "formats/hf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "formats/hf_encoder.h"

namespace wok {
namespace {

using Json = nlohmann::json;

// What Hugging Face calls an architecture (model_type), and GGUF. A model type that is not here is
// refused: what its tensors' names have in common with others' says nothing about its equations.
struct ModelType {
  const char* hf;
  const char* gguf;
};
constexpr ModelType kModelTypes[] = {
    {"llama", "llama"},           {"mistral", "llama"},      {"mixtral", "llama"},
    {"qwen2", "qwen2"},           {"qwen2_moe", "qwen2moe"}, {"qwen3", "qwen3"},
    {"qwen3_moe", "qwen3moe"},    {"gemma", "gemma"},        {"gemma3_text", "gemma3"},
    {"olmo2", "olmo2"},           {"olmoe", "olmoe"},        {"granite", "granite"},
    {"granitemoe", "granitemoe"}, {"smollm3", "smollm3"},
};

// Settings that change the equations, with the value that wok computes.
struct Fixed {
  const char* name;
  Json value;
};

class Reader {
 public:
  Reader(const Json& config, const std::string& folder) : c_(config), folder_(folder) {}

  Result<HfConfig> read() {
    if (!c_.is_object()) return invalid(fmt::format("'{}/config.json' is no JSON object", folder_));
    const std::string type = c_.value("model_type", "");
    std::string known;
    for (const ModelType& t : kModelTypes) {
      if (type == t.hf) out_.architecture = t.gguf;
      known += (known.empty() ? "" : ", ") + std::string(t.hf);
    }
    if (is_hf_encoder(type)) return read_hf_encoder(c_, folder_);
    if (out_.architecture.empty()) {
      return unsupported(fmt::format("'{}' is of model type '{}'; wok runs {}, {}", folder_, type,
                                     known, hf_encoder_types()));
    }
    out_.norms_plus_one = out_.architecture == "gemma" || out_.architecture == "gemma3";
    out_.post_norms = out_.architecture == "gemma3" || out_.architecture == "olmo2";
    out_.tied = c_.value("tie_word_embeddings", out_.norms_plus_one);
    text("general.architecture", out_.architecture);
    WOK_RETURN_IF_ERROR(check_settings(type));
    WOK_RETURN_IF_ERROR(sizes());
    WOK_RETURN_IF_ERROR(experts(type));
    WOK_RETURN_IF_ERROR(rope());
    for (const auto& [from, to] : {std::pair{"embedding_multiplier", "embedding_scale"},
                                   {"residual_multiplier", "residual_scale"},
                                   {"attention_multiplier", "attention.scale"},
                                   {"logits_scaling", "logit_scale"}}) {
      if (has(from)) number(to, c_.at(from).get<double>());
    }
    return std::move(out_);
  }

 private:
  bool has(const char* name) const { return c_.contains(name) && !c_.at(name).is_null(); }
  std::string key(const std::string& name) const { return out_.architecture + "." + name; }
  void text(const std::string& whole, std::string value) { out_.keys[whole] = std::move(value); }
  void whole(const char* name, int64_t value) { out_.keys[key(name)] = value; }
  void number(const char* name, double value) { out_.keys[key(name)] = value; }

  Status copy(const char* from, const char* to, bool required = true) {
    if (!has(from)) {
      if (!required) return Ok{};
      return invalid(fmt::format("'{}/config.json' has no '{}'", folder_, from));
    }
    if (!c_.at(from).is_number_integer()) {
      return invalid(fmt::format("'{}/config.json': '{}' is no whole number", folder_, from));
    }
    whole(to, c_.at(from).get<int64_t>());
    return Ok{};
  }

  Error refuse(const std::string& name, const Json& value, const Json& ours) const {
    return unsupported(fmt::format("'{}/config.json': {} is {}; wok runs {} with {}", folder_, name,
                                   value.dump(), out_.architecture, ours.dump()));
  }

  Status check_settings(const std::string& type) {
    const bool gelu = out_.norms_plus_one;
    const char* name = has("hidden_activation") ? "hidden_activation" : "hidden_act";
    if (has(name) && c_.at(name) != (gelu ? "gelu_pytorch_tanh" : "silu") &&
        !(gelu && c_.at(name) == "gelu")) {
      return refuse(name, c_.at(name), gelu ? "gelu_pytorch_tanh" : "silu");
    }
    const Fixed fixed[] = {
        {"attn_logit_softcapping", nullptr},
        {"final_logit_softcapping", nullptr},
        {"decoder_sparse_step", 1},
        {"mlp_only_layers", Json::array()},
        {"clip_qkv", nullptr},
        {"pretraining_tp", 1},
        {"position_embedding_type", "rope"},
        {"use_bidirectional_attention", false},
    };
    for (const Fixed& f : fixed) {
      if (has(f.name) && c_.at(f.name) != f.value) return refuse(f.name, c_.at(f.name), f.value);
    }
    const bool normalizes = type == "qwen3_moe", never = type == "qwen2_moe" || type == "olmoe";
    if ((normalizes || never) && has("norm_topk_prob") && c_.at("norm_topk_prob") != normalizes) {
      return refuse("norm_topk_prob", c_.at("norm_topk_prob"), normalizes);
    }
    // Layers of another kind than the architecture's files in GGUF have at that place.
    if (has("layer_types")) {
      const bool gemma3 = type == "gemma3_text";
      size_t i = 0;
      for (const Json& kind : c_.at("layer_types")) {
        const char* ours = gemma3 && ++i % 6 != 0 ? "sliding_attention" : "full_attention";
        if (kind != ours) return refuse("layer_types", kind, ours);
      }
    }
    if (has("no_rope_layers")) {
      size_t i = 0;
      for (const Json& rotates : c_.at("no_rope_layers")) {
        const int ours = type == "smollm3" && ++i % 4 == 0 ? 0 : 1;
        if (rotates != ours) return refuse("no_rope_layers", rotates, ours);
      }
    }
    return Ok{};
  }

  Status sizes() {
    WOK_RETURN_IF_ERROR(copy("num_hidden_layers", "block_count"));
    WOK_RETURN_IF_ERROR(copy("hidden_size", "embedding_length"));
    WOK_RETURN_IF_ERROR(copy("intermediate_size", "feed_forward_length"));
    WOK_RETURN_IF_ERROR(copy("num_attention_heads", "attention.head_count"));
    WOK_RETURN_IF_ERROR(copy("num_key_value_heads", "attention.head_count_kv", false));
    WOK_RETURN_IF_ERROR(copy("max_position_embeddings", "context_length"));
    WOK_RETURN_IF_ERROR(copy("head_dim", "attention.key_length", false));
    WOK_RETURN_IF_ERROR(copy("head_dim", "attention.value_length", false));
    if (out_.architecture == "gemma3") {
      WOK_RETURN_IF_ERROR(copy("sliding_window", "attention.sliding_window"));
      // GGUF's files of this architecture scale by the head's size, except the largest.
      const double scale = c_.value("query_pre_attn_scalar", 256.0);
      const double usual = c_.value("num_hidden_layers", 0) == 62
                               ? c_.value("hidden_size", 1.0) / c_.value("num_attention_heads", 1.0)
                               : c_.value("head_dim", 256.0);
      if (scale != usual) return refuse("query_pre_attn_scalar", scale, usual);
    } else if (has("sliding_window") && c_.value("use_sliding_window", true)) {
      // Within the window such a model is the baseline; beyond it wok does not go.
      const int64_t context = c_.value("max_position_embeddings", int64_t{0});
      whole("context_length", std::min(context, c_.at("sliding_window").get<int64_t>()));
    }
    if (has("partial_rotary_factor")) {
      const int64_t heads = std::max<int64_t>(1, c_.value("num_attention_heads", int64_t{1}));
      const int64_t dim = c_.value("head_dim", c_.value("hidden_size", int64_t{0}) / heads);
      const double factor = c_.at("partial_rotary_factor").get<double>();
      whole("rope.dimension_count", std::lround(static_cast<double>(dim) * factor));
    }
    number("attention.layer_norm_rms_epsilon", c_.value("rms_norm_eps", 1e-6));
    return Ok{};
  }

  Status experts(const std::string& type) {
    const char* count = has("num_local_experts") ? "num_local_experts" : "num_experts";
    if (!has(count) || c_.at(count) == 0) return Ok{};
    WOK_RETURN_IF_ERROR(copy(count, "expert_count"));
    WOK_RETURN_IF_ERROR(copy("num_experts_per_tok", "expert_used_count"));
    WOK_RETURN_IF_ERROR(copy("moe_intermediate_size", "expert_feed_forward_length", false));
    if (type == "qwen2_moe") {
      WOK_RETURN_IF_ERROR(
          copy("shared_expert_intermediate_size", "expert_shared_feed_forward_length"));
    }
    return Ok{};
  }

  Status rope() {
    // Newer configurations gather these in rope_parameters, older ones in rope_scaling.
    Json scaling = has("rope_parameters") ? c_.at("rope_parameters")
                   : has("rope_scaling")  ? c_.at("rope_scaling")
                                          : Json::object();
    double base = c_.value("rope_theta", 10000.0);
    if (scaling.contains("full_attention")) {  // one a kind of layer
      const Json local = scaling.value("sliding_attention", Json::object());
      if (local.value("rope_theta", 10000.0) != 10000.0 ||
          local.value("rope_type", "default") != "default") {
        return refuse("rope_parameters", local, "a base of 10000 for local layers");
      }
      scaling = scaling.at("full_attention");
    }
    base = scaling.value("rope_theta", base);
    if (c_.value("rope_local_base_freq", 10000.0) != 10000.0) {
      return refuse("rope_local_base_freq", c_.at("rope_local_base_freq"), 10000);
    }
    number("rope.freq_base", base);
    const std::string type = scaling.value("rope_type", scaling.value("type", "default"));
    if (type == "default") return Ok{};
    const double factor = scaling.value("factor", 1.0);
    if (type == "linear" || type == "yarn") {
      text(key("rope.scaling.type"), type);
      number("rope.scaling.factor", factor);
      if (type == "linear") return Ok{};
      const Fixed fixed[] = {{"beta_fast", 32}, {"beta_slow", 1}};
      for (const Fixed& f : fixed) {
        if (scaling.value(f.name, f.value) != f.value) {
          return refuse(f.name, scaling.at(f.name), f.value);
        }
      }
      for (const char* other : {"mscale", "mscale_all_dim", "attention_factor"}) {
        if (scaling.contains(other) && !scaling.at(other).is_null()) {
          return refuse(other, scaling.at(other), nullptr);
        }
      }
      whole("rope.scaling.original_context_length",
            scaling.value("original_max_position_embeddings",
                          c_.value("max_position_embeddings", int64_t{0})));
      return Ok{};
    }
    if (type == "llama3") return llama3(scaling, base, factor);
    return unsupported(
        fmt::format("'{}/config.json': RoPE scaling '{}' is not supported; wok has "
                    "default, linear, yarn and llama3",
                    folder_, type));
  }

  // Llama 3.1's stretch: slow pairs are slowed down by the factor, fast ones left alone, between
  // them a blend by wavelength (arXiv 2407.21783, and the release's reference code).
  Status llama3(const Json& scaling, double base, double factor) {
    const double low = scaling.value("low_freq_factor", 1.0);
    const double high = scaling.value("high_freq_factor", 4.0);
    const double original = scaling.value("original_max_position_embeddings", 8192.0);
    const int64_t heads = std::max<int64_t>(1, c_.value("num_attention_heads", int64_t{1}));
    const int64_t dim = c_.value("head_dim", c_.value("hidden_size", int64_t{0}) / heads);
    if (!(factor >= 1 && high > low && low > 0) || dim < 2 || dim > 4096) {
      return invalid(fmt::format("'{}/config.json': rope_scaling is {}", folder_, scaling.dump()));
    }
    for (int64_t pair = 0; pair < dim / 2; ++pair) {
      const double wavelength =
          2 * M_PI * std::pow(base, 2 * static_cast<double>(pair) / static_cast<double>(dim));
      const double turns = original / wavelength;
      const double smooth = (turns - low) / (high - low);
      const double divisor = turns > high  ? 1
                             : turns < low ? factor
                                           : 1 / ((1 - smooth) / factor + smooth);
      out_.rope_factors.push_back(static_cast<float>(divisor));
    }
    return Ok{};
  }

  const Json& c_;
  const std::string& folder_;
  HfConfig out_;
};

}  // namespace

Result<HfConfig> read_hf_config(const Json& config, const std::string& folder) {
  return Reader(config, folder).read();
}

}  // namespace wok
