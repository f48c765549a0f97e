#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "text/piece_table.h"
#include "text/rust_text.h"
#include "text/utf8.h"

namespace wok {

namespace {

constexpr std::string_view kByteLevelModel = "gpt2";

// Tokens that end a model's turn in the families we know. Only control tokens of these names
// count: a plain piece that looks like one is text.
constexpr std::string_view kEndOfTurnPieces[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|eot|>",
    "<end_of_turn>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "</s>",
    "<eos>",
    "<EOT>",
    "<|endofturn|>",
    "<|eom|>",
    "<|user_end|>",
    "<|role_end|>",
    "<|end_of_role|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
};

class RustTokenizer final : public Tokenizer {
 public:
  RustTokenizer(RustHandle<wok_tokenizer, wok_tokenizer_free> handle, PieceTable pieces,
                const TokenizerData& data)
      : handle_(std::move(handle)),
        pieces_(std::move(pieces)),
        bos_id_(data.bos_id),
        eos_id_(data.eos_id),
        add_bos_(data.add_bos && data.bos_id >= 0),
        add_eos_(data.add_eos && data.eos_id >= 0),
        drops_leading_space_(data.model != kByteLevelModel && data.add_space_prefix) {
    add_end_id(data.eos_id);
    add_end_id(data.eot_id);
    for (const int32_t id : data.end_ids) add_end_id(id);
    for (const std::string_view piece : kEndOfTurnPieces) {
      if (const int32_t id = id_of(piece); is_control(id)) add_end_id(id);
    }
  }

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special,
                                      bool parse_special) const override {
    RustIds encoded;
    RustText error;
    const wok_status status = wok_tokenizer_encode(handle_.get(), rust_bytes(text),
                                                   parse_special ? 1 : 0, &encoded.raw, &error.raw);
    if (status != WOK_OK) return rust_error(status, error.view());
    const std::span<const int32_t> ids = encoded.view();
    // A rendered chat often begins with BOS already, and some end with EOS: never a second one.
    const bool bos = add_special && add_bos_ && (ids.empty() || ids.front() != bos_id_);
    const bool eos = add_special && add_eos_ && (ids.empty() || ids.back() != eos_id_);
    std::vector<int32_t> out;
    out.reserve(ids.size() + 2);
    if (bos) out.push_back(bos_id_);
    out.insert(out.end(), ids.begin(), ids.end());
    if (eos) out.push_back(eos_id_);
    return out;
  }

  std::string_view piece(int32_t id, bool show_special) const override {
    return pieces_.piece(id, show_special);
  }

  std::string decode(std::span<const int32_t> ids, bool show_special) const override {
    std::string bytes;
    for (const int32_t id : ids) bytes += pieces_.piece(id, show_special);
    std::string text;
    text.reserve(bytes.size());
    take_whole_characters(bytes, text);
    if (!bytes.empty()) text += kReplacementCharacter;
    if (drops_leading_space_ && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

  int32_t vocab_size() const override { return pieces_.size(); }
  int32_t bos_id() const override { return bos_id_; }
  int32_t eos_id() const override { return eos_id_; }
  bool add_bos() const override { return add_bos_; }
  const std::vector<int32_t>& end_ids() const override { return end_ids_; }
  bool is_control(int32_t id) const override { return pieces_.is_control(id); }
  int32_t id_of(std::string_view piece) const override {
    return wok_tokenizer_id_of(handle_.get(), rust_bytes(piece));
  }

 private:
  void add_end_id(int32_t id) {
    if (id >= 0 && std::find(end_ids_.begin(), end_ids_.end(), id) == end_ids_.end()) {
      end_ids_.push_back(id);
    }
  }

  RustHandle<wok_tokenizer, wok_tokenizer_free> handle_;
  PieceTable pieces_;
  int32_t bos_id_;
  int32_t eos_id_;
  bool add_bos_;
  bool add_eos_;
  bool drops_leading_space_;
  std::vector<int32_t> end_ids_;
};

Error wrong_length(const char* table, size_t found, size_t expected) {
  return invalid(std::string("tokenizer: the table of ") + table + " has " + std::to_string(found) +
                 " entries, expected " + std::to_string(expected) +
                 ", one a token; the model file is damaged, fetch it again");
}

Status check_id(const char* what, int32_t id, size_t count) {
  if (id < -1 || (id >= 0 && static_cast<size_t>(id) >= count)) {
    return invalid(std::string("tokenizer: the id of ") + what + " is " + std::to_string(id) +
                   ", but the vocabulary has " + std::to_string(count) + " tokens");
  }
  return Ok{};
}

Status check_tables(const TokenizerData& data) {
  const size_t count = data.tokens.size();
  if (count == 0) {
    return invalid("tokenizer: the vocabulary (tokenizer.ggml.tokens) is missing or empty");
  }
  size_t bytes = 0;
  for (const std::string& token : data.tokens) bytes += token.size();
  if (std::max(count, bytes) > std::numeric_limits<int32_t>::max()) {
    return too_large("tokenizer: a vocabulary of " + std::to_string(count) + " tokens and " +
                     std::to_string(bytes) + " bytes is over the limit of 2^31");
  }
  if (!data.kinds.empty() && data.kinds.size() != count) {
    return wrong_length("kinds (tokenizer.ggml.token_type)", data.kinds.size(), count);
  }
  if (!data.scores.empty() && data.scores.size() != count) {
    return wrong_length("scores (tokenizer.ggml.scores)", data.scores.size(), count);
  }
  if (data.model == kByteLevelModel && data.merges.empty()) {
    return invalid(
        "tokenizer: byte-level BPE needs the table of merges "
        "(tokenizer.ggml.merges), which is missing or empty");
  }
  WOK_RETURN_IF_ERROR(check_id("BOS", data.bos_id, count));
  WOK_RETURN_IF_ERROR(check_id("EOS", data.eos_id, count));
  WOK_RETURN_IF_ERROR(check_id("EOT", data.eot_id, count));
  WOK_RETURN_IF_ERROR(check_id("the unknown token", data.unk_id, count));
  for (const int32_t id : data.end_ids) WOK_RETURN_IF_ERROR(check_id("an end token", id, count));
  return Ok{};
}

// Files without the table leave the kinds to be told from the ids and the SPM spelling of bytes.
std::vector<TokenKind> guess_kinds(const TokenizerData& data) {
  std::vector<TokenKind> kinds(data.tokens.size(), TokenKind::kNormal);
  if (data.model != kByteLevelModel) {
    for (size_t id = 0; id < kinds.size(); ++id) {
      const std::string& token = data.tokens[id];
      if (token.size() == 6 && token.starts_with("<0x") && token.ends_with(">")) {
        kinds[id] = TokenKind::kByte;
      }
    }
  }
  if (data.unk_id >= 0) kinds[static_cast<size_t>(data.unk_id)] = TokenKind::kUnknown;
  for (const int32_t id : {data.bos_id, data.eos_id, data.eot_id}) {
    if (id >= 0) kinds[static_cast<size_t>(id)] = TokenKind::kControl;
  }
  return kinds;
}

std::vector<wok_bytes> rust_list(const std::vector<std::string>& texts) {
  std::vector<wok_bytes> list;
  list.reserve(texts.size());
  for (const std::string& text : texts) list.push_back(rust_bytes(text));
  return list;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerData data) {
  WOK_RETURN_IF_ERROR(check_tables(data));
  if (data.kinds.empty()) data.kinds = guess_kinds(data);

  static_assert(sizeof(TokenKind) == sizeof(int32_t));
  const std::vector<wok_bytes> tokens = rust_list(data.tokens);
  const std::vector<wok_bytes> merges = rust_list(data.merges);
  wok_tokenizer_spec spec = {};
  spec.model = rust_bytes(data.model);
  spec.pre = rust_bytes(data.pre);
  spec.tokens = tokens.data();
  spec.kinds = reinterpret_cast<const int32_t*>(data.kinds.data());
  spec.scores = data.scores.empty() ? nullptr : data.scores.data();
  spec.token_count = tokens.size();
  spec.merges = merges.data();
  spec.merge_count = merges.size();
  spec.unk_id = data.unk_id;
  spec.add_space_prefix = data.add_space_prefix ? 1 : 0;

  wok_status status = WOK_OK;
  RustText error;
  RustHandle<wok_tokenizer, wok_tokenizer_free> handle(
      wok_tokenizer_new(&spec, &status, &error.raw));
  if (!handle) return rust_error(status, "tokenizer: " + std::string(error.view()));
  PieceTable pieces(data.tokens, data.kinds, data.model == kByteLevelModel);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<RustTokenizer>(std::move(handle), std::move(pieces), data));
}

}  // namespace wok
