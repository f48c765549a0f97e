// Tokenizers of encoders: a whole tokenizer.json by Hugging Face's `tokenizers`, pairs of texts
// with their token types included. GGUF's WordPiece vocabularies are put into that form first.
// Immutable after create(); may be used from many threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace wok {

class WholeTokenizer : public Tokenizer {
 public:
  struct Encoding {
    std::vector<int32_t> ids, types;  // types: one a token, 0 for the first text of a pair
  };

  // Errors: kInvalid for what is no tokenizer.json.
  static Result<std::unique_ptr<WholeTokenizer>> create(std::string_view tokenizer_json);

  // A text with the special tokens that the model wants around it; with `second` a pair of texts.
  // max_tokens: 0, or the most there may be: the longer text is cut first, at its end.
  // Errors: kInvalid for text that is not UTF-8.
  virtual Result<Encoding> encode_pair(std::string_view first, const std::string_view* second,
                                       int32_t max_tokens = 0) const = 0;
};

// The tokenizer.json of a GGUF file's WordPiece vocabulary (tokenizer.ggml.model "bert"): words'
// first pieces begin with ▁ there and others with nothing, where the original has nothing and ##.
// Case is folded, as BERT's uncased models do, unless some token has a capital.
// Errors: kInvalid names a special token that is missing.
Result<std::string> wordpiece_json(const std::vector<std::string>& tokens, int32_t cls, int32_t sep,
                                   int32_t unk);

// Whether this tokenizer.json folds case.
bool folds_case(std::string_view tokenizer_json);

}  // namespace wok
