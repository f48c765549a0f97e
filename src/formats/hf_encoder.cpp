#include "formats/hf_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace wok {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  Reader(const Json& config, const std::string& folder) : c_(config), folder_(folder) {}

  Result<HfConfig> read() {
    out_.encoder = true;
    out_.architecture = "bert";
    out_.keys["general.architecture"] = std::string("bert");
    for (const auto& [name, ours] : {std::pair<const char*, Json>{"hidden_act", "gelu"},
                                     {"position_embedding_type", "absolute"},
                                     {"is_decoder", false},
                                     {"add_cross_attention", false}}) {
      if (has(name) && c_.at(name) != ours) {
        return unsupported(fmt::format("'{}/config.json': {} is {}; wok runs encoders with {}",
                                       folder_, name, c_.at(name).dump(), ours.dump()));
      }
    }
    for (const auto& [from, to] : {std::pair{"num_hidden_layers", "block_count"},
                                   {"hidden_size", "embedding_length"},
                                   {"intermediate_size", "feed_forward_length"},
                                   {"num_attention_heads", "attention.head_count"},
                                   {"max_position_embeddings", "context_length"}}) {
      if (!has(from) || !c_.at(from).is_number_integer()) {
        return invalid(
            fmt::format("'{}/config.json': '{}' is missing or no whole number", folder_, from));
      }
      out_.keys[std::string("bert.") + to] = c_.at(from).get<int64_t>();
    }
    out_.keys["bert.attention.layer_norm_epsilon"] = c_.value("layer_norm_eps", 1e-12);
    WOK_RETURN_IF_ERROR(head());
    return std::move(out_);
  }

 private:
  bool has(const char* name) const { return c_.contains(name) && !c_.at(name).is_null(); }

  // What stands on top, by the name of the class that wrote the folder.
  Status head() {
    const Json classes = c_.value("architectures", Json::array());
    const std::string name =
        classes.is_array() && !classes.empty() ? classes.at(0).get<std::string>() : "BertModel";
    for (const char* plain : {"BertModel", "BertForMaskedLM", "BertForPreTraining"}) {
      if (name == plain) return Ok{};
    }
    if (name != "BertForSequenceClassification") {
      return unsupported(
          fmt::format("'{}/config.json': a '{}'; wok runs BertModel for embeddings and "
                      "BertForSequenceClassification with one label for reranking",
                      folder_, name));
    }
    const size_t labels =
        has("id2label") ? c_.at("id2label").size() : c_.value("num_labels", size_t{2});
    if (labels != 1) {
      return unsupported(
          fmt::format("'{}' is a classifier of {} labels; wok reranks with those of one label",
                      folder_, labels));
    }
    out_.rank = true;
    out_.keys["bert.pooling_type"] = static_cast<int64_t>(PoolingKey::kRank);
    return Ok{};
  }

  const Json& c_;
  const std::string& folder_;
  HfConfig out_;
};

struct Name {
  const char* hf;
  const char* gguf;
};

constexpr Name kOutside[] = {{"embeddings.word_embeddings", "token_embd"},
                             {"embeddings.position_embeddings", "position_embd"},
                             {"embeddings.token_type_embeddings", "token_types"},
                             {"embeddings.LayerNorm", "token_embd_norm"}};

constexpr Name kInLayer[] = {{"attention.self.query", "attn_q"},
                             {"attention.self.key", "attn_k"},
                             {"attention.self.value", "attn_v"},
                             {"attention.output.dense", "attn_output"},
                             {"attention.output.LayerNorm", "attn_output_norm"},
                             {"intermediate.dense", "ffn_up"},
                             {"output.dense", "ffn_down"},
                             {"output.LayerNorm", "layer_output_norm"}};

// A module of modules.json by the last part of its class's name.
std::string class_of(const Json& module) {
  const std::string type = module.value("type", "");
  const size_t dot = type.rfind('.');
  return dot == std::string::npos ? type : type.substr(dot + 1);
}

Result<PoolingKey> read_pooling(const Json& config, const std::string& where) {
  constexpr std::pair<const char*, PoolingKey> kKnown[] = {
      {"mean", PoolingKey::kMean}, {"cls", PoolingKey::kCls}, {"lasttoken", PoolingKey::kLast}};
  std::string mode;
  if (config.contains("pooling_mode") && config.at("pooling_mode").is_string()) {
    mode = config.at("pooling_mode").get<std::string>();
  }
  for (const auto& [key, value] : config.items()) {
    constexpr std::string_view kPrefix = "pooling_mode_";
    if (!key.starts_with(kPrefix) || value != true) continue;
    std::string name = key.substr(kPrefix.size());
    if (name == "cls_token") name = "cls";
    if (name == "mean_tokens") name = "mean";
    mode += (mode.empty() ? "" : " and ") + name;
  }
  for (const auto& [name, pooling] : kKnown) {
    if (mode == name) return pooling;
  }
  return unsupported(
      fmt::format("'{}' pools by '{}'; wok knows mean, cls and lasttoken", where, mode));
}

// A folder's module stands in a folder below it.
bool is_inside(const std::string& path) {
  return !path.starts_with('/') && path.find("..") == std::string::npos;
}

Status limit_length(const ReadHfJson& read, HfConfig& config) {
  WOK_TRY(sentence, read("sentence_bert_config.json"));
  WOK_TRY(tokenizer, read("tokenizer_config.json"));
  auto& context = std::get<int64_t>(config.keys[config.architecture + ".context_length"]);
  const auto limit = [&](const Json& json, const char* name) {
    if (!json.contains(name) || !json.at(name).is_number()) return false;
    const auto most = json.at(name).get<double>();  // some have 1e30
    if (most >= 1 && most < static_cast<double>(context)) context = static_cast<int64_t>(most);
    return true;
  };
  const bool said = sentence && limit(*sentence, "max_seq_length");
  if (!said && tokenizer) limit(*tokenizer, "model_max_length");
  if (sentence && sentence->value("do_lower_case", false)) config.keys[kLowercaseKey] = int64_t{1};
  return Ok{};
}

}  // namespace

bool is_hf_encoder(const std::string& model_type) {
  return model_type == "bert";
}

std::string hf_encoder_types() {
  return "bert";
}

Result<HfConfig> read_hf_encoder(const Json& config, const std::string& folder) {
  return Reader(config, folder).read();
}

std::vector<HfPlace> hf_encoder_places(std::string_view module, const HfConfig& config) {
  if (module.starts_with("bert.")) module.remove_prefix(5);
  for (const Name& name : kOutside) {
    if (module == name.hf) return {{.name = name.gguf}};
  }
  // The head that only the masked words of training needed, and BERT's own pooler where vectors are
  // made of the states.
  if (module.starts_with("cls.")) return {{}};
  if (module == "pooler.dense") return {{.name = config.rank ? "cls" : ""}};
  if (module == "classifier" && config.rank) return {{.name = "cls.output"}};
  constexpr std::string_view kLayers = "encoder.layer.";
  if (!module.starts_with(kLayers)) return {};
  module.remove_prefix(kLayers.size());
  int32_t layer = 0;
  const auto [end, error] = std::from_chars(module.data(), module.data() + module.size(), layer);
  if (error != std::errc() || end == module.data() + module.size() || *end != '.' || layer < 0) {
    return {};
  }
  module.remove_prefix(static_cast<size_t>(end - module.data()) + 1);
  for (const Name& name : kInLayer) {
    if (module == name.hf) return {{.name = fmt::format("blk.{}.{}", layer, name.gguf)}};
  }
  return {};
}

Status read_sentence_modules(const ReadHfJson& read, const std::string& folder, HfConfig& config) {
  const std::string key = config.architecture + ".pooling_type";
  WOK_TRY(modules, read("modules.json"));
  if (!modules || config.rank) {
    if (!config.encoder) return Ok{};
    // sentence-transformers takes the mean where a folder says nothing.
    if (!config.rank) config.keys[key] = static_cast<int64_t>(PoolingKey::kMean);
    return limit_length(read, config);
  }
  if (!modules->is_array()) {
    return invalid(fmt::format("'{}/modules.json' is no list of modules", folder));
  }
  bool normalize = false;
  PoolingKey pooling = PoolingKey::kNone;
  for (const Json& module : *modules) {
    const std::string name = class_of(module), path = module.value("path", "");
    if (name == "Transformer" && path.empty()) continue;
    if (name == "Normalize") {
      normalize = true;
      continue;
    }
    if (name != "Pooling" || pooling != PoolingKey::kNone || normalize || !is_inside(path)) {
      return unsupported(
          fmt::format("'{}/modules.json' has a module '{}' in '{}'; wok runs a Transformer, one "
                      "Pooling and a Normalize",
                      folder, name, path));
    }
    const std::string file = path + "/config.json";
    WOK_TRY(settings, read(file));
    if (!settings) return not_found(fmt::format("'{}/{}' is missing", folder, file));
    WOK_TRY(read_mode, read_pooling(*settings, folder + "/" + file));
    pooling = read_mode;
  }
  if (pooling == PoolingKey::kNone) {
    return unsupported(
        fmt::format("'{}/modules.json' has no Pooling; wok makes one vector a text", folder));
  }
  WOK_TRY(prompts, read("config_sentence_transformers.json"));
  if (prompts && prompts->contains("default_prompt_name") &&
      !prompts->at("default_prompt_name").is_null()) {
    return unsupported(fmt::format(
        "'{}/config_sentence_transformers.json' puts a prompt before every text "
        "(default_prompt_name), which wok does not do: remove it there and send it with the text",
        folder));
  }
  config.keys[key] = static_cast<int64_t>(pooling);
  config.keys[kNormalizeKey] = int64_t{normalize ? 1 : 0};
  return limit_length(read, config);
}

}  // namespace wok
