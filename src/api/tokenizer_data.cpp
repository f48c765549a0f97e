#include "api/tokenizer_data.h"

#include <fmt/format.h>

#include "formats/hf_folder.h"
#include "text/hf_tokenizer.h"

namespace wok {
namespace {

Result<int32_t> read_id(const ModelFile& file, const char* key, size_t vocab) {
  WOK_TRY(id, file.get_int(key));
  if (!id) return -1;
  if (*id < 0 || static_cast<size_t>(*id) >= vocab) {
    return invalid(
        fmt::format("'{}': {} is {}, the vocabulary has {} tokens", file.path(), key, *id, vocab));
  }
  return static_cast<int32_t>(*id);
}

}  // namespace

Result<TokenizerData> read_tokenizer_data(const ModelFile& file) {
  WOK_TRY(hugging_face, file.get_string(kHfTokenizerKey));
  if (hugging_face) {
    WOK_TRY(settings, file.get_string(kHfTokenizerConfigKey));
    WOK_TRY(generation, file.get_string(kHfGenerationConfigKey));
    Result<TokenizerData> read =
        read_hf_tokenizer(*hugging_face, settings.value_or(""), generation.value_or(""));
    if (read.ok()) return read;
    return Error{read.error().kind, fmt::format("'{}': {}", file.path(), read.error().message)};
  }
  if (!file.is_gguf()) {
    return not_found(
        fmt::format("'{}' has no tokenizer.json; wok makes none of other files", file.path()));
  }
  TokenizerData data;
  WOK_TRY(model, file.get_string("tokenizer.ggml.model"));
  WOK_TRY(tokens, file.get_strings("tokenizer.ggml.tokens"));
  if (!model || tokens.empty()) {
    return invalid(
        fmt::format("'{}' carries no tokenizer (keys tokenizer.ggml.model and "
                    "tokenizer.ggml.tokens); convert it again with its tokenizer",
                    file.path()));
  }
  WOK_TRY(pre, file.get_string("tokenizer.ggml.pre"));
  WOK_TRY(kinds, file.get_ints("tokenizer.ggml.token_type"));
  WOK_TRY(scores, file.get_floats("tokenizer.ggml.scores"));
  WOK_TRY(merges, file.get_strings("tokenizer.ggml.merges"));
  const size_t vocab = tokens.size();
  WOK_TRY(bos, read_id(file, "tokenizer.ggml.bos_token_id", vocab));
  WOK_TRY(eos, read_id(file, "tokenizer.ggml.eos_token_id", vocab));
  WOK_TRY(eot, read_id(file, "tokenizer.ggml.eot_token_id", vocab));
  WOK_TRY(unk, read_id(file, "tokenizer.ggml.unknown_token_id", vocab));
  WOK_TRY(add_bos, file.get_bool("tokenizer.ggml.add_bos_token"));
  WOK_TRY(add_eos, file.get_bool("tokenizer.ggml.add_eos_token"));
  WOK_TRY(add_space, file.get_bool("tokenizer.ggml.add_space_prefix"));
  data.model = std::string(*model);
  data.pre = std::string(pre.value_or(""));
  data.tokens = std::move(tokens);
  data.scores = std::move(scores);
  data.merges = std::move(merges);
  for (const int64_t kind : kinds) data.kinds.push_back(static_cast<TokenKind>(kind));
  data.bos_id = bos;
  data.eos_id = eos;
  data.eot_id = eot;
  data.unk_id = unk;
  // Without the key llama.cpp adds BOS for SPM models and none for BPE ones.
  data.add_bos = add_bos.value_or(data.model == "llama");
  data.add_eos = add_eos.value_or(false);
  data.add_space_prefix = add_space.value_or(true);
  return data;
}

}  // namespace wok
