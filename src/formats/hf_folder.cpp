#include "formats/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "formats/hf_config.h"
#include "formats/hf_encoder.h"
#include "formats/hf_gpt_oss.h"
#include "formats/hf_names.h"
#include "formats/hf_scheme.h"
#include "formats/hf_shards.h"
#include "formats/hf_sources.h"

namespace wok {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// What modules' tensors are called, behind the module's name. `bias` is a tensor of its own.
constexpr const char* kParts[] = {"weight",
                                  "qweight",
                                  "qzeros",
                                  "scales",
                                  "g_idx",
                                  "weight_packed",
                                  "weight_scale",
                                  "weight_scale_inv",
                                  "weight_shape",
                                  "weight_g_idx",
                                  "weight_zero_point",
                                  "input_scale"};
// Of a quantized KV cache and of activations, which wok quantizes by itself or not at all.
constexpr const char* kIgnoredParts[] = {"k_scale", "v_scale", "kv_scale", "output_scale",
                                         "rotary_emb.inv_freq",
                                         // Counters that older writers kept with the weights.
                                         "embeddings.position_ids", "embeddings.token_type_ids"};

bool is_ignored(std::string_view tensor) {
  return std::any_of(std::begin(kIgnoredParts), std::end(kIgnoredParts),
                     [&](const char* part) { return tensor.ends_with(part); });
}

// Parts of a module that a thing may be quantized by; a plain "weight" is told by its type.
bool is_plain(const HfModule& module) {
  const HfTensor* weight = module.find("weight");
  return weight != nullptr && weight->is_float();
}

}  // namespace

class HfFolder {
 public:
  explicit HfFolder(std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
    file_.path_ = path_;
    file_.is_gguf_ = false;
  }

  Result<ModelFile> open() {
    WOK_TRY(config, read_json("config.json"));
    if (!config) {
      return not_found(fmt::format(
          "'{}' is a folder without config.json; wok opens .gguf files and Hugging Face folders",
          path_));
    }
    WOK_TRY(read, read_hf_config(*config, path_));
    config_ = std::move(read);
    WOK_RETURN_IF_ERROR(read_sentence_modules(
        [this](const std::string& name) { return read_any_json(name.c_str()); }, path_, config_));
    WOK_RETURN_IF_ERROR(read_quantization(*config));
    WOK_RETURN_IF_ERROR(open_shards());
    add_keys();
    WOK_RETURN_IF_ERROR(add_texts());
    WOK_RETURN_IF_ERROR(add_modules());
    file_.owned_.push_back(tensors_kept_);
    return std::move(file_);
  }

 private:
  // A text or list that lives as long as the file.
  template <class T>
  const T& own(T value) {
    auto kept = std::make_shared<const T>(std::move(value));
    file_.owned_.push_back(kept);
    return *kept;
  }

  Result<std::optional<std::string_view>> read_text(const char* name) {
    const std::string path = path_ + "/" + name;
    std::error_code error;
    if (!fs::exists(path, error)) return std::optional<std::string_view>();
    WOK_TRY(mapping, MappedFile::open(path));
    auto kept = std::make_shared<MappedFile>(std::move(mapping));
    const std::span<const uint8_t> bytes = kept->bytes();
    file_.mappings_.push_back(std::move(kept));
    return std::optional(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  Result<std::optional<Json>> read_any_json(const char* name) {
    WOK_TRY(text, read_text(name));
    if (!text) return std::optional<Json>();
    Json json = Json::parse(*text, nullptr, false);
    if (json.is_discarded()) return invalid(fmt::format("'{}/{}' is no JSON", path_, name));
    return std::optional<Json>(std::move(json));
  }

  Result<std::optional<Json>> read_json(const char* name) {
    WOK_TRY(json, read_any_json(name));
    if (json && !json->is_object()) {
      return invalid(fmt::format("'{}/{}' is no JSON object", path_, name));
    }
    return json;
  }

  Status read_quantization(const Json& config) {
    for (const char* name : {"quantization_config", "compression_config"}) {
      if (config.contains(name) && config.at(name).is_object()) quantization_ = config.at(name);
    }
    for (const char* name : {"quantize_config.json", "quant_config.json"}) {  // older writers
      if (!quantization_.is_null()) break;
      WOK_TRY(json, read_json(name));
      if (!json) continue;
      quantization_ = std::move(*json);
      if (!quantization_.contains("quant_method")) {
        quantization_["quant_method"] =
            std::strcmp(name, "quant_config.json") == 0 ? "awq" : "gptq";
      }
    }
    if (quantization_.is_null()) return Ok{};
    const std::string method = quantization_.value("quant_method", "");
    // GPT-OSS's own: its experts' tensors say it themselves.
    if (method == "mxfp4" && config_.architecture == "gpt-oss") return Ok{};
    std::string known;
    for (const HfScheme* scheme : hf_schemes()) {
      if (method == scheme->method) scheme_ = scheme;
      known += (known.empty() ? "" : ", ") + std::string(scheme->method);
    }
    if (scheme_ == nullptr) {
      return unsupported(
          fmt::format("'{}' is quantized by '{}'; wok reads {}", path_, method, known));
    }
    return Ok{};
  }

  Status open_shards() {
    WOK_TRY(shards, open_hf_shards(path_));
    tensors_ = std::move(shards.tensors);
    for (auto& file : shards.files) {
      file_.file_bytes_ += file->bytes().size();
      file_.mappings_.push_back(std::move(file));
    }
    return Ok{};
  }

  void add_key(const std::string& name, const ModelValue& value) {
    file_.values_[own(name)] = value;
  }
  void add_text(const char* name, std::string_view text) { add_key(name, text); }

  void add_keys() {
    for (const auto& [name, value] : config_.keys) {
      if (const auto* n = std::get_if<int64_t>(&value)) add_key(name, *n);
      if (const auto* x = std::get_if<double>(&value)) add_key(name, *x);
      if (const auto* s = std::get_if<std::string>(&value)) {
        add_key(name, std::string_view(own(*s)));
      }
    }
    const std::string name = fs::path(path_).filename().string();
    add_text("general.name", own(name));
  }

  Status add_texts() {
    WOK_TRY(tokenizer, read_text("tokenizer.json"));
    if (tokenizer) add_text(kHfTokenizerKey, *tokenizer);
    WOK_TRY(generation, read_json("generation_config.json"));
    if (generation) add_text(kHfGenerationConfigKey, own(generation->dump()));
    WOK_TRY(settings, read_json("tokenizer_config.json"));
    WOK_TRY(separate, read_text("chat_template.jinja"));
    if (separate) {
      add_text("tokenizer.chat_template", *separate);
    } else if (settings && settings->contains("chat_template")) {
      const Json& given = settings->at("chat_template");
      Json chosen = given;
      if (given.is_array()) {  // several, by name
        for (const Json& one : given) {
          if (one.is_object() && one.value("name", "") == "default") chosen = one.at("template");
        }
      }
      if (chosen.is_string()) add_text("tokenizer.chat_template", own(chosen.get<std::string>()));
    }
    if (settings) add_text(kHfTokenizerConfigKey, own(settings->dump()));
    return Ok{};
  }

  Result<HfMatrix> read_module(const HfModule& module) {
    if (is_plain(module)) return read_plain(module);
    if (scheme_ == nullptr) {
      return module.wrong("it is quantized, and the configuration does not say how");
    }
    // compressed-tensors' bytes and FP8 stand in `weight`.
    if (module.find(scheme_->part) == nullptr && module.find("weight") == nullptr) {
      return module.wrong(
          fmt::format("the configuration says {}, its tensors say otherwise", scheme_->method));
    }
    return scheme_->read(module, quantization_);
  }

  // By GGUF's name: a matrix, or the experts' matrices.
  struct Found {
    std::vector<std::pair<int64_t, HfMatrix>> parts;
    std::vector<int64_t> shape;  // slowest first
    std::string module;
  };

  // The module that a tensor is a part of; "" for a bias.
  static std::string module_of(const std::string& tensor) {
    const size_t dot = tensor.rfind('.');
    if (dot == std::string::npos) return "";
    const std::string_view part = std::string_view(tensor).substr(dot + 1);
    for (const char* known : kParts) {
      if (part == known) return tensor.substr(0, dot);
    }
    return "";
  }

  Status add_modules() {
    const HfTensors& tensors = *tensors_kept_;
    std::map<std::string, Found> found;
    std::set<std::string> seen;
    for (const auto& [name, tensor] : tensors) {
      if (config_.architecture == "gpt-oss" && is_gpt_oss_tensor(name)) {
        WOK_TRY(made, read_gpt_oss_tensor(name, tensors, path_));
        for (const HfNamed& one : made)
          add_matrix(one.name, one.matrix, one.matrix.rows == 1 ? 1 : 2);
        continue;
      }
      if (name.ends_with(".bias")) {
        WOK_RETURN_IF_ERROR(add_bias(name, tensor));
        continue;
      }
      if (is_ignored(name)) continue;
      const std::string module = module_of(name);
      if (!seen.insert(module).second) continue;
      const std::vector<HfPlace> places =
          module.empty() ? std::vector<HfPlace>() : hf_places(module, config_);
      if (places.empty()) {
        return unsupported(fmt::format("'{}' holds '{}', which wok has no place for in {}", path_,
                                       name, config_.architecture));
      }
      if (places[0].name.empty() || (places[0].name == "output" && config_.tied)) continue;
      WOK_TRY(matrix, read_module({module, &tensors, path_}));
      for (const HfPlace& place : places) {
        Found& to = found[place.name];
        to.module = module;
        if (place.parts > 1) {
          const int64_t slabs = tensor.shape.size() == 3 ? tensor.dim(0) : 1;
          WOK_TRY(part, hf_slice(matrix, slabs, place.part, place.parts, path_, module));
          to.parts.emplace_back(place.expert, std::move(part));
        } else {
          to.parts.emplace_back(place.expert, matrix);
        }
        if (place.expert < 0) to.shape = tensor.shape;
      }
    }
    agree_on_orders(found);
    for (auto& [name, entry] : found) WOK_RETURN_IF_ERROR(add_found(name, entry));
    for (const auto& [name, factors] : config_.rope_vectors) add_rope_factors(name, factors);
    return Ok{};
  }

  // Matrices that share an input have one order of its columns, or none.
  static void agree_on_orders(std::map<std::string, Found>& found) {
    const auto one = [&](const std::string& name) -> HfMatrix* {
      const auto it = found.find(name);
      return it == found.end() ? nullptr : &it->second.parts[0].second;
    };
    const auto order = [](const HfMatrix& m) {
      return m.source == nullptr ? std::span<const int32_t>() : m.source->column_order();
    };
    const auto make_dense = [&](HfMatrix& m) {
      if (order(m).empty()) return;
      m.source = m.dense;
      m.format = &kWeightFormat_f32;
    };
    for (auto& [name, entry] : found) {
      if (name.find("_exps") != std::string::npos) {
        for (auto& [expert, matrix] : entry.parts) make_dense(matrix);
      }
    }
    for (const auto& [name, entry] : found) {
      for (const auto& [first, others] :
           {std::pair{"attn_q", std::vector{"attn_k", "attn_v"}},
            std::pair{"ffn_gate", std::vector{"ffn_up"}},
            std::pair{"ffn_gate_shexp", std::vector{"ffn_up_shexp", "ffn_gate_inp"}}}) {
        if (!name.ends_with(fmt::format(".{}", first))) continue;
        const std::string prefix = name.substr(0, name.rfind('.') + 1);
        std::vector<HfMatrix*> all = {one(name)};
        for (const char* other : others) {
          if (HfMatrix* m = one(prefix + other); m != nullptr) all.push_back(m);
        }
        // A float matrix reads activations as they are, whatever the order.
        const bool agree = std::all_of(all.begin(), all.end(), [&](HfMatrix* m) {
          return m->format->codes == nullptr || std::ranges::equal(order(*m), order(*all[0]));
        });
        const bool leads = all[0]->format->codes != nullptr;
        const bool any =
            std::any_of(all.begin(), all.end(), [&](HfMatrix* m) { return !order(*m).empty(); });
        if (any && (!agree || !leads)) {
          for (HfMatrix* m : all) make_dense(*m);
        }
      }
    }
  }

  Status add_bias(const std::string& name, const HfTensor& tensor) {
    const std::string module = name.substr(0, name.size() - std::strlen(".bias"));
    const std::vector<HfPlace> places = hf_places(module, config_);
    if (config_.encoder && !places.empty() && places[0].name.empty()) return Ok{};
    if (places.empty() || places[0].name.empty() || !tensor.is_float()) {
      return unsupported(fmt::format("'{}' holds '{}', which wok has no place for", path_, name));
    }
    // Some writers give every module a bias of zeros.
    const bool of_inputs =
        module.ends_with("q_proj") || module.ends_with("k_proj") || module.ends_with("v_proj");
    const bool wanted = config_.encoder ||
                        (config_.architecture.starts_with("qwen2") && of_inputs) ||
                        config_.architecture == "gpt-oss";
    if (!wanted) {
      bool zero = true;
      for (int64_t i = 0; i < tensor.elements() && zero; ++i) zero = tensor.float_at(i) == 0;
      if (zero) return Ok{};
    }
    ModelTensor out;
    out.format = hf_float_format(tensor.type);
    out.dims = 1;
    out.shape[0] = tensor.elements();
    out.data = tensor.data;
    add_tensor(places[0].name + ".bias", out);
    return Ok{};
  }

  Status add_found(const std::string& name, Found& entry) {
    HfMatrix matrix;
    if (entry.parts[0].first >= 0) {
      std::sort(entry.parts.begin(), entry.parts.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<HfMatrix> experts;
      for (auto& [expert, part] : entry.parts) {
        if (expert != static_cast<int64_t>(experts.size())) {
          return invalid(fmt::format("'{}': expert {} of '{}' is missing or there twice", path_,
                                     experts.size(), entry.module));
        }
        experts.push_back(std::move(part));
      }
      WOK_TRY(all, hf_stack(std::move(experts), path_, entry.module));
      matrix = std::move(all);
    } else {
      matrix = std::move(entry.parts[0].second);
    }
    const bool norm = name.ends_with("_norm");
    if (norm && config_.norms_plus_one) matrix = hf_plus_one(matrix);
    add_matrix(name + ".weight", matrix, entry.shape.size() == 1 ? 1 : 2);
    return Ok{};
  }

  void add_matrix(const std::string& name, const HfMatrix& matrix, int32_t dims) {
    ModelTensor out;
    out.format = matrix.format;
    out.dims = dims;
    out.shape[0] = matrix.cols;
    out.shape[1] = matrix.rows;
    out.data = matrix.data;
    out.source = matrix.source.get();
    out.identity = matrix.identity;
    out.stored_bytes = matrix.stored_bytes;
    if (matrix.source != nullptr) file_.owned_.push_back(matrix.source);
    add_tensor(name, out);
  }

  void add_rope_factors(const std::string& name, const std::vector<float>& values) {
    const std::vector<float>& factors = own(values);
    ModelTensor out;
    out.format = &kWeightFormat_f32;
    out.dims = 1;
    out.shape[0] = static_cast<int64_t>(factors.size());
    out.data = {reinterpret_cast<const uint8_t*>(factors.data()), factors.size() * sizeof(float)};
    add_tensor(name + ".weight", out);
  }

  void add_tensor(const std::string& name, ModelTensor tensor) {
    tensor.name = own(name);
    tensor.type = tensor.format->gguf_type;
    file_.tensor_index_[tensor.name] = file_.tensors_.size();
    file_.tensors_.push_back(tensor);
  }

  std::string path_;
  ModelFile file_;
  HfConfig config_;
  Json quantization_;
  const HfScheme* scheme_ = nullptr;
  // Sources point into the tensors.
  std::shared_ptr<HfTensors> tensors_kept_ = std::make_shared<HfTensors>();
  HfTensors& tensors_ = *tensors_kept_;
};

Result<ModelFile> open_hf_folder(const std::string& path) {
  try {
    return HfFolder(path).open();
  } catch (const Json::exception& error) {
    // A field of another type than it has to be. The library's message names the type it found.
    return invalid(fmt::format("'{}': a field of its JSON files is of the wrong type: {}", path,
                               error.what()));
  }
}

}  // namespace wok
