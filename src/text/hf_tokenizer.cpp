#include "text/hf_tokenizer.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxTokens = 1 << 22;

Error not_supported(const std::string& what, const Json& type) {
  return unsupported("tokenizer.json: the " + what + " " + type.dump() + " is not one wok knows");
}

// A component, or each of those in a Sequence.
template <class Fn>
Status for_each_component(const Json& component, const char* list, const Fn& fn) {
  if (component.is_null()) return Ok{};
  if (component.value("type", "") != "Sequence") return fn(component);
  for (const Json& part : component.at(list)) WOK_RETURN_IF_ERROR(fn(part));
  return Ok{};
}

class Reader {
 public:
  Reader(const Json& tokenizer, const Json& config, const Json& generation)
      : t_(tokenizer), config_(config), generation_(generation) {}

  Result<TokenizerData> read() {
    const Json& model = t_.at("model");
    if (model.value("type", "BPE") != "BPE") return not_supported("model", model.at("type"));
    WOK_RETURN_IF_ERROR(read_tokens(model));
    WOK_RETURN_IF_ERROR(read_merges(model));
    WOK_RETURN_IF_ERROR(read_normalizer());
    WOK_RETURN_IF_ERROR(read_pre_tokenizer());
    const bool byte_level = !patterns_.empty();
    data_.model = byte_level ? "gpt2" : "llama";
    data_.add_space_prefix = space_prefix_;
    if (byte_level) {
      data_.pre = Json{{"patterns", patterns_},
                       {"nfc", nfc_},
                       {"ignore_merges", model.value("ignore_merges", false)}}
                      .dump();
    } else {
      mark_bytes();
    }
    read_special(model);
    return std::move(data_);
  }

 private:
  Status read_tokens(const Json& model) {
    for (const auto& [piece, id] : model.at("vocab").items()) {
      WOK_RETURN_IF_ERROR(put(id, piece, TokenKind::kNormal));
    }
    for (const Json& added : t_.value("added_tokens", Json::array())) {
      const bool special = added.value("special", false);
      WOK_RETURN_IF_ERROR(put(added.at("id"), added.at("content").get<std::string>(),
                              special ? TokenKind::kControl : TokenKind::kUserDefined));
    }
    return Ok{};
  }

  // Ids without a text stay empty, as in GGUF's filler.
  Status put(const Json& number, const std::string& piece, TokenKind kind) {
    const auto id = number.get<int64_t>();
    if (id < 0 || id >= kMaxTokens) {
      return invalid("tokenizer.json: a token has the id " + number.dump());
    }
    const auto at = static_cast<size_t>(id);
    if (at >= data_.tokens.size()) {
      data_.tokens.resize(at + 1);
      data_.kinds.resize(at + 1, TokenKind::kUnused);
    }
    data_.tokens[at] = piece;
    data_.kinds[at] = kind;
    ids_[piece] = static_cast<int32_t>(id);
    return Ok{};
  }

  Status read_merges(const Json& model) {
    for (const Json& merge : model.at("merges")) {
      // Older files have "left right", newer ones pairs.
      data_.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                               : merge.at(0).get<std::string>() + " " +
                                                     merge.at(1).get<std::string>());
    }
    return Ok{};
  }

  Status read_normalizer() {
    return for_each_component(t_.value("normalizer", Json()), "normalizers", [&](const Json& n) {
      const std::string type = n.value("type", "");
      if (type == "NFC") {
        nfc_ = true;
      } else if (type == "Prepend") {
        space_prefix_ = true;
      } else if (type != "Replace" || n.value("content", "") != "▁") {
        return Status(not_supported("normalizer", n));
      }
      return Status(Ok{});
    });
  }

  Status read_pre_tokenizer() {
    bool byte_level = false;
    WOK_RETURN_IF_ERROR(
        for_each_component(t_.value("pre_tokenizer", Json()), "pretokenizers", [&](const Json& p) {
          const std::string type = p.value("type", "");
          if (type == "ByteLevel") {
            byte_level = true;
            if (p.value("add_prefix_space", false)) {
              return Status(not_supported("pre-tokenizer", p));
            }
            if (p.value("use_regex", true)) patterns_.push_back("gpt2");
          } else if (type == "Digits") {
            patterns_.push_back(p.value("individual_digits", false) ? "\\p{N}" : "\\p{N}+");
          } else if (type == "Split" && p.at("pattern").contains("Regex")) {
            patterns_.push_back(p.at("pattern").at("Regex").get<std::string>());
          } else if (type == "Metaspace") {
            space_prefix_ = p.value("prepend_scheme", "always") != "never";
          } else if (type != "Split" || p.at("pattern").value("String", "") != " ") {
            return Status(not_supported("pre-tokenizer", p));
          }
          return Status(Ok{});
        }));
    if (!byte_level && !patterns_.empty()) {
      return unsupported("tokenizer.json: patterns without bytes as its alphabet");
    }
    return Ok{};
  }

  void mark_bytes() {
    for (size_t id = 0; id < data_.tokens.size(); ++id) {
      const std::string& token = data_.tokens[id];
      if (token.size() == 6 && token.starts_with("<0x") && token.ends_with(">")) {
        data_.kinds[id] = TokenKind::kByte;
      }
    }
  }

  int32_t id_of(const Json& token) const {
    const std::string text = token.is_object()   ? token.value("content", "")
                             : token.is_string() ? token.get<std::string>()
                                                 : "";
    const auto it = ids_.find(text);
    return it == ids_.end() ? -1 : it->second;
  }

  void read_special(const Json& model) {
    data_.bos_id = id_of(config_.value("bos_token", Json()));
    data_.eos_id = id_of(config_.value("eos_token", Json()));
    data_.unk_id = id_of(model.value("unk_token", Json()));
    if (data_.unk_id >= 0 && data_.model == "llama") {
      data_.kinds[static_cast<size_t>(data_.unk_id)] = TokenKind::kUnknown;
    }
    const Json ends = generation_.value("eos_token_id", Json());
    for (const Json& id : ends.is_array() ? ends : Json::array({ends})) {
      if (!id.is_number_integer()) continue;
      const auto n = id.get<int64_t>();
      if (n >= 0 && n < static_cast<int64_t>(data_.tokens.size())) {
        data_.end_ids.push_back(static_cast<int32_t>(n));
      }
    }
    // What stands around a text is said by the template of the post-processor.
    data_.add_bos = config_.value("add_bos_token", false);
    data_.add_eos = config_.value("add_eos_token", false);
    static_cast<void>(
        for_each_component(t_.value("post_processor", Json()), "processors", [&](const Json& p) {
          if (p.value("type", "") != "TemplateProcessing") return Status(Ok{});
          bool before = true;
          for (const Json& part : p.at("single")) {
            if (part.contains("Sequence")) before = false;
            if (!part.contains("SpecialToken")) continue;
            const int32_t id = id_of(part.at("SpecialToken").at("id"));
            if (before && data_.bos_id < 0) data_.bos_id = id;
            if (before) data_.add_bos = id == data_.bos_id;
            if (!before) data_.add_eos = id == data_.eos_id;
          }
          return Status(Ok{});
        }));
  }

  const Json& t_;
  const Json& config_;
  const Json& generation_;
  TokenizerData data_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<std::string> patterns_;
  bool nfc_ = false, space_prefix_ = false;
};

Result<Json> parse(std::string_view text, const char* name) {
  if (text.empty()) return Json(Json::object());
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid(std::string(name) + " is no JSON object");
  return json;
}

}  // namespace

Result<TokenizerData> read_hf_tokenizer(std::string_view tokenizer, std::string_view config,
                                        std::string_view generation) {
  WOK_TRY(t, parse(tokenizer, "tokenizer.json"));
  WOK_TRY(c, parse(config, "tokenizer_config.json"));
  WOK_TRY(g, parse(generation, "generation_config.json"));
  try {
    return Reader(t, c, g).read();
  } catch (const Json::exception& error) {
    return invalid(std::string("tokenizer.json is not as it has to be: ") + error.what());
  }
}

}  // namespace wok
