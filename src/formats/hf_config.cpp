#include "formats/hf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "formats/hf_encoder.h"
#include "formats/hf_rope.h"

namespace wok {
namespace {

using Json = nlohmann::json;

// What Hugging Face calls an architecture (model_type), and GGUF. A model type that is not here is
// refused: what its tensors' names have in common with others' says nothing about its equations.
struct ModelType {
  const char* hf;
  const char* gguf;
  int full_every = 1;  // every so many layers one sees all positions, the others a window
};
constexpr ModelType kModelTypes[] = {
    {"llama", "llama"},
    {"mistral", "llama"},
    {"mixtral", "llama"},
    {"qwen2", "qwen2"},
    {"qwen2_moe", "qwen2moe"},
    {"qwen3", "qwen3"},
    {"qwen3_moe", "qwen3moe"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2", 2},
    {"gemma3_text", "gemma3", 6},
    {"olmo2", "olmo2"},
    {"olmoe", "olmoe"},
    {"granite", "granite"},
    {"granitemoe", "granitemoe"},
    {"granitemoeshared", "granitemoe"},
    {"smollm3", "smollm3"},
    {"phi3", "phi3"},
    {"gpt_oss", "gpt-oss", 2},
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
      if (type == t.hf) {
        out_.architecture = t.gguf;
        full_every_ = t.full_every;
      }
      known += (known.empty() ? "" : ", ") + std::string(t.hf);
    }
    if (is_hf_encoder(type)) return read_hf_encoder(c_, folder_);
    if (out_.architecture.empty()) {
      return unsupported(fmt::format("'{}' is of model type '{}'; wok runs {}, {}", folder_, type,
                                     known, hf_encoder_types()));
    }
    out_.norms_plus_one = out_.architecture.starts_with("gemma");
    // GGUF calls the norm before GPT-OSS's experts so, too.
    out_.post_norms = full_gemma() || out_.architecture == "olmo2" || type == "gpt_oss";
    out_.tied = c_.value("tie_word_embeddings", out_.norms_plus_one);
    text("general.architecture", out_.architecture);
    WOK_RETURN_IF_ERROR(check_settings(type));
    WOK_RETURN_IF_ERROR(sizes(type));
    WOK_RETURN_IF_ERROR(experts(type));
    WOK_RETURN_IF_ERROR(read_hf_rope(c_, folder_, out_));
    for (const auto& [from, to] : {std::pair{"embedding_multiplier", "embedding_scale"},
                                   {"residual_multiplier", "residual_scale"},
                                   {"attention_multiplier", "attention.scale"},
                                   {"logits_scaling", "logit_scale"}}) {
      if (has(from)) number(to, c_.at(from).get<double>());
    }
    return std::move(out_);
  }

 private:
  // Gemma 2 and 3: with windows, caps and a scale of their own.
  bool full_gemma() const { return out_.architecture == "gemma2" || out_.architecture == "gemma3"; }
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
        {"decoder_sparse_step", 1},
        {"mlp_only_layers", Json::array()},
        {"clip_qkv", nullptr},
        {"pretraining_tp", 1},
        {"position_embedding_type", "rope"},
        {"use_bidirectional_attention", false},
        {"swiglu_limit", 7},
        {"swiglu_alpha", 1.702},
    };
    for (const Fixed& f : fixed) {
      if (has(f.name) && c_.at(f.name) != f.value) return refuse(f.name, c_.at(f.name), f.value);
    }
    if (!full_gemma() && has("final_logit_softcapping")) {
      return refuse("final_logit_softcapping", c_.at("final_logit_softcapping"), nullptr);
    }
    if (out_.architecture != "gemma2" && has("attn_logit_softcapping")) {
      return refuse("attn_logit_softcapping", c_.at("attn_logit_softcapping"), nullptr);
    }
    const bool normalizes = type == "qwen3_moe", never = type == "qwen2_moe" || type == "olmoe";
    if ((normalizes || never) && has("norm_topk_prob") && c_.at("norm_topk_prob") != normalizes) {
      return refuse("norm_topk_prob", c_.at("norm_topk_prob"), normalizes);
    }
    // Layers of another kind than the architecture's files in GGUF have at that place.
    if (has("layer_types")) {
      int i = 0;
      for (const Json& kind : c_.at("layer_types")) {
        const char* ours = ++i % full_every_ != 0 ? "sliding_attention" : "full_attention";
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

  // A cap that Gemma 2 has unless the configuration says null, and Gemma 3 has not.
  void cap(const char* name, double usual) {
    if (c_.contains(name) || out_.architecture == "gemma2") {
      number(name, !c_.contains(name) ? usual : has(name) ? c_.at(name).get<double>() : 0);
    }
  }

  Status sizes(const std::string& type) {
    WOK_RETURN_IF_ERROR(copy("num_hidden_layers", "block_count"));
    WOK_RETURN_IF_ERROR(copy("hidden_size", "embedding_length"));
    WOK_RETURN_IF_ERROR(copy("intermediate_size", "feed_forward_length"));
    WOK_RETURN_IF_ERROR(copy("num_attention_heads", "attention.head_count"));
    WOK_RETURN_IF_ERROR(copy("num_key_value_heads", "attention.head_count_kv", false));
    WOK_RETURN_IF_ERROR(copy("max_position_embeddings", "context_length"));
    WOK_RETURN_IF_ERROR(copy("head_dim", "attention.key_length", false));
    WOK_RETURN_IF_ERROR(copy("head_dim", "attention.value_length", false));
    if (full_gemma()) {
      WOK_RETURN_IF_ERROR(copy("sliding_window", "attention.sliding_window"));
      const double scale = c_.value("query_pre_attn_scalar", 256.0);
      if (!(scale > 0)) {
        return invalid(
            fmt::format("'{}/config.json': query_pre_attn_scalar is {}", folder_, scale));
      }
      number("attention.scale", 1 / std::sqrt(scale));
      cap("final_logit_softcapping", 30);
      if (out_.architecture == "gemma2") cap("attn_logit_softcapping", 50);
    } else if (out_.architecture == "phi3" || type == "gpt_oss") {
      WOK_RETURN_IF_ERROR(copy("sliding_window", "attention.sliding_window", false));
    } else if (has("sliding_window") && c_.value("use_sliding_window", true)) {
      // Within the window such a model is the baseline; beyond it wok does not go.
      const int64_t context = c_.value("max_position_embeddings", int64_t{0});
      whole("context_length", std::min(context, c_.at("sliding_window").get<int64_t>()));
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
    if (type == "granitemoeshared" && c_.value("shared_intermediate_size", 0) > 0) {
      WOK_RETURN_IF_ERROR(copy("shared_intermediate_size", "expert_shared_feed_forward_length"));
    }
    if (type == "qwen2_moe") {
      WOK_RETURN_IF_ERROR(
          copy("shared_expert_intermediate_size", "expert_shared_feed_forward_length"));
    }
    return Ok{};
  }

  const Json& c_;
  const std::string& folder_;
  int full_every_ = 1;
  HfConfig out_;
};

}  // namespace

Result<HfConfig> read_hf_config(const Json& config, const std::string& folder) {
  return Reader(config, folder).read();
}

}  // namespace wok
