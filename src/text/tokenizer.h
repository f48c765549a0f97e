// Text ⇄ token ids, by Hugging Face `tokenizers` (Rust) built from what a model file says.
// A Tokenizer is immutable after create() and may be used from many threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace wok {

// Token classes as GGUF numbers them (tokenizer.ggml.token_type).
enum class TokenKind : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Everything a tokenizer is built from. Filled by the model loader from GGUF metadata.
struct TokenizerData {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SPM)
  std::string pre;    // tokenizer.ggml.pre: which pre-tokenizer, e.g. "smollm"; or a JSON object
                      // {"patterns": […], "nfc": …, "ignore_merges": …} that spells one out
  std::vector<std::string> tokens;  // id -> piece, as stored in the file
  std::vector<TokenKind> kinds;     // empty, or one a token
  std::vector<float> scores;        // SPM only: empty, or one a token
  std::vector<std::string> merges;  // BPE only: "left right", best first
  int32_t bos_id = -1;              // -1: none
  int32_t eos_id = -1;
  int32_t eot_id = -1;  // end of turn, where a file names one
  int32_t unk_id = -1;
  std::vector<int32_t> end_ids;  // more tokens that end a turn, where a file names some
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;  // SPM: put ▁ before the first word
};

class Tokenizer {
 public:
  // Errors: kUnsupported names a tokenizer model or pre-tokenizer wok does not know;
  // kInvalid says which table is missing, empty or of the wrong length.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerData data);
  virtual ~Tokenizer() = default;

  // add_special: put BOS (and EOS) as the model wants them, but never a second BOS before a text
  // that already begins with it. parse_special: text such as "<|im_start|>" becomes its control
  // token; otherwise it stays plain text (use for untrusted content).
  // Errors: kInvalid for text that is not UTF-8.
  virtual Result<std::vector<int32_t>> encode(std::string_view text, bool add_special,
                                              bool parse_special) const = 0;

  // The bytes of one token; may be part of a UTF-8 character. Control tokens give "" unless
  // `show_special`. The view lives as long as the tokenizer. An id out of range gives "".
  virtual std::string_view piece(int32_t id, bool show_special = false) const = 0;

  // Whole-text decode: bytes of all pieces, invalid UTF-8 replaced by U+FFFD; an SPM leading space
  // is dropped when the model adds one.
  virtual std::string decode(std::span<const int32_t> ids, bool show_special = false) const = 0;

  virtual int32_t vocab_size() const = 0;
  virtual int32_t bos_id() const = 0;  // -1: none
  virtual int32_t eos_id() const = 0;  // -1: none
  virtual bool add_bos() const = 0;
  virtual const std::vector<int32_t>& end_ids() const = 0;  // EOS and every end-of-turn token
  virtual bool is_control(int32_t id) const = 0;
  // The id of exactly this piece ("<|im_end|>"), or -1.
  virtual int32_t id_of(std::string_view piece) const = 0;
};

}  // namespace wok
