#include "text/whole_tokenizer.h"

#include <nlohmann/json.hpp>

#include "text/rust_text.h"

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTokens = 1 << 22;
constexpr std::string_view kWordStart = "▁", kContinues = "##";

// What the tokens look like, for whoever shows them.
class Pieces {
 public:
  Status read(const Json& json) {
    const Json& model = json.at("model");
    const Json& vocab = model.at("vocab");
    const bool word_piece = model.value("type", "") == "WordPiece";
    if (vocab.is_object()) {
      for (const auto& [piece, id] : vocab.items()) WOK_RETURN_IF_ERROR(put(id, piece, false));
    } else {  // Unigram: [piece, score], in the order of ids
      for (size_t id = 0; id < vocab.size(); ++id) {
        WOK_RETURN_IF_ERROR(put(id, vocab.at(id).at(0).get<std::string>(), false));
      }
    }
    for (std::string& piece : pieces_) piece = as_text(piece, word_piece);
    for (const Json& added : json.value("added_tokens", Json::array())) {
      WOK_RETURN_IF_ERROR(put(added.at("id"), added.at("content").get<std::string>(),
                              added.value("special", false)));
    }
    return Ok{};
  }
  bool has(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < pieces_.size(); }
  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  const std::string& text(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  bool special(int32_t id) const { return has(id) && special_[static_cast<size_t>(id)]; }

 private:
  Status put(const Json& id, const std::string& piece, bool special) {
    if (!id.is_number_integer() || id < 0 || id >= kMaxTokens) {
      return invalid("tokenizer.json: a token has the id " + id.dump());
    }
    const auto at = id.get<size_t>();
    if (at >= pieces_.size()) pieces_.resize(at + 1), special_.resize(at + 1);
    pieces_[at] = piece;
    special_[at] = special;
    return Ok{};
  }

  static std::string as_text(std::string piece, bool word_piece) {
    if (word_piece) {
      if (piece.starts_with(kContinues) && piece.size() > kContinues.size()) return piece.substr(2);
      return piece.empty() ? piece : " " + piece;
    }
    for (size_t at; (at = piece.find(kWordStart)) != std::string::npos;) {
      piece.replace(at, kWordStart.size(), " ");
    }
    return piece;
  }

  std::vector<std::string> pieces_;
  std::vector<bool> special_;
};

class RustWholeTokenizer final : public WholeTokenizer {
 public:
  RustWholeTokenizer(RustHandle<wok_whole_tokenizer, wok_whole_free> handle, Pieces pieces)
      : handle_(std::move(handle)), pieces_(std::move(pieces)) {}

  Result<Encoding> encode_pair(std::string_view first, const std::string_view* second,
                               int32_t max_tokens) const override {
    return encode_texts(first, second, true, max_tokens);
  }

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special,
                                      bool parse_special) const override {
    if (!parse_special) {
      return unsupported(
          "this model's tokenizer always reads special tokens in a text: leave out "
          "parse_special");
    }
    WOK_TRY(encoded, encode_texts(text, nullptr, add_special, 0));
    return std::move(encoded.ids);
  }

  std::string_view piece(int32_t id, bool show_special) const override {
    if (!pieces_.has(id) || (pieces_.special(id) && !show_special)) return "";
    return pieces_.text(id);
  }

  std::string decode(std::span<const int32_t> ids, bool show_special) const override {
    RustText text, error;
    const wok_status status = wok_whole_decode(handle_.get(), ids.data(), ids.size(),
                                               show_special ? 1 : 0, &text.raw, &error.raw);
    return status == WOK_OK ? std::string(text.view()) : "";
  }

  int32_t vocab_size() const override { return pieces_.size(); }
  int32_t bos_id() const override { return -1; }
  int32_t eos_id() const override { return -1; }
  bool add_bos() const override { return false; }
  const std::vector<int32_t>& end_ids() const override { return end_ids_; }
  bool is_control(int32_t id) const override { return pieces_.special(id); }
  int32_t id_of(std::string_view piece) const override {
    return wok_whole_id_of(handle_.get(), rust_bytes(piece));
  }

 private:
  Result<Encoding> encode_texts(std::string_view first, const std::string_view* second,
                                bool special, int32_t max_tokens) const {
    RustIds ids, types;
    RustText error;
    const wok_bytes other = second == nullptr ? wok_bytes{} : rust_bytes(*second);
    const wok_status status = wok_whole_encode(
        handle_.get(), rust_bytes(first), second == nullptr ? nullptr : &other, special ? 1 : 0,
        static_cast<size_t>(max_tokens), &ids.raw, &types.raw, &error.raw);
    if (status != WOK_OK) return rust_error(status, error.view());
    return Encoding{{ids.view().begin(), ids.view().end()},
                    {types.view().begin(), types.view().end()}};
  }

  RustHandle<wok_whole_tokenizer, wok_whole_free> handle_;
  Pieces pieces_;
  std::vector<int32_t> end_ids_;
};

Json special_token(const std::string& text, int32_t id) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Json around(const std::string& token, int type) {
  return {{"SpecialToken", {{"id", token}, {"type_id", type}}}};
}

Json sequence(const char* name, int type) {
  return {{"Sequence", {{"id", name}, {"type_id", type}}}};
}

}  // namespace

Result<std::unique_ptr<WholeTokenizer>> WholeTokenizer::create(std::string_view tokenizer_json) {
  wok_status status = WOK_OK;
  RustText error;
  RustHandle<wok_whole_tokenizer, wok_whole_free> handle(
      wok_whole_new(rust_bytes(tokenizer_json), &status, &error.raw));
  if (!handle) return rust_error(status, error.view());
  Pieces pieces;
  try {
    WOK_RETURN_IF_ERROR(pieces.read(Json::parse(tokenizer_json)));
  } catch (const Json::exception& fault) {
    return invalid(std::string("tokenizer.json is not as it has to be: ") + fault.what());
  }
  return std::unique_ptr<WholeTokenizer>(
      std::make_unique<RustWholeTokenizer>(std::move(handle), std::move(pieces)));
}

Result<std::string> wordpiece_json(const std::vector<std::string>& tokens, int32_t cls, int32_t sep,
                                   int32_t unk) {
  for (const auto& [name, id] : {std::pair{"CLS", cls}, {"SEP", sep}, {"the unknown token", unk}}) {
    if (id < 0 || static_cast<size_t>(id) >= tokens.size()) {
      return invalid(std::string("the WordPiece vocabulary has no id of ") + name);
    }
  }
  Json vocab = Json::object(), added = Json::array();
  bool capitals = false;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string& token = tokens[id];
    const bool special = token.starts_with('[') && token.ends_with(']') && token.size() > 2;
    std::string piece = token.starts_with(kWordStart) ? token.substr(kWordStart.size())
                        : special                     ? token
                                                      : std::string(kContinues) + token;
    if (special) {
      // [unused17] and the like are words to the original tokenizer; only these five are more.
      for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
        if (token == name) added.push_back(special_token(token, static_cast<int32_t>(id)));
      }
    } else {
      for (const char c : token) capitals = capitals || (c >= 'A' && c <= 'Z');
    }
    vocab.emplace(std::move(piece), id);
  }
  const std::string& cls_text = tokens[static_cast<size_t>(cls)];
  const std::string& sep_text = tokens[static_cast<size_t>(sep)];
  const auto named = [](const std::string& text, int32_t id) {
    return Json{{"id", text}, {"ids", {id}}, {"tokens", {text}}};
  };
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", !capitals}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {around(cls_text, 0), sequence("A", 0), around(sep_text, 0)}},
        {"pair",
         {around(cls_text, 0), sequence("A", 0), around(sep_text, 0), sequence("B", 1),
          around(sep_text, 1)}},
        {"special_tokens", {{cls_text, named(cls_text, cls)}, {sep_text, named(sep_text, sep)}}}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", kContinues}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", tokens[static_cast<size_t>(unk)]},
        {"continuing_subword_prefix", kContinues},
        {"max_input_chars_per_word", 100},
        {"vocab", std::move(vocab)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool folds_case(std::string_view tokenizer_json) {
  const Json json = Json::parse(tokenizer_json, nullptr, false);
  if (!json.is_object() || !json.contains("normalizer")) return false;
  const auto folds = [](const Json& n) {
    return n.is_object() &&
           (n.value("type", "") == "Lowercase" ||
            (n.value("type", "") == "BertNormalizer" && n.value("lowercase", false)));
  };
  const Json& normalizer = json.at("normalizer");
  if (folds(normalizer)) return true;
  if (!normalizer.is_object() || !normalizer.contains("normalizers")) return false;
  for (const Json& part : normalizer.at("normalizers")) {
    if (folds(part)) return true;
  }
  return false;
}

}  // namespace wok
