#include "api/load_embedder.h"

#include <fmt/format.h>
#include <malloc.h>

#include "formats/hf_encoder.h"
#include "formats/hf_folder.h"
#include "kernels/isa.h"
#include "models/encoder.h"

namespace wok {
namespace {

Result<int32_t> read_id(const ModelFile& file, const char* name, const char* older) {
  WOK_TRY(id, file.get_int(fmt::format("tokenizer.ggml.{}_token_id", name)));
  if (!id) {
    WOK_TRY(other, file.get_int(fmt::format("tokenizer.ggml.{}_token_id", older)));
    id = other;
  }
  return id && *id >= 0 && *id <= INT32_MAX ? static_cast<int32_t>(*id) : -1;
}

// tokenizer.json, from the folder or made of a GGUF file's vocabulary.
Result<std::string> read_json(const ModelFile& file) {
  WOK_TRY(json, file.get_string(kHfTokenizerKey));
  if (json) return std::string(*json);
  if (!file.is_gguf()) {
    return not_found(
        fmt::format("'{}' has no tokenizer.json; wok makes none of other files", file.path()));
  }
  WOK_TRY(model, file.get_string("tokenizer.ggml.model"));
  if (model.value_or("") != "bert") {
    return unsupported(
        fmt::format("'{}' has the tokenizer '{}'; of encoders' tokenizers in GGUF files wok knows "
                    "bert (WordPiece)",
                    file.path(), model.value_or("")));
  }
  WOK_TRY(tokens, file.get_strings("tokenizer.ggml.tokens"));
  WOK_TRY(cls, read_id(file, "cls", "bos"));
  WOK_TRY(sep, read_id(file, "seperator", "eos"));  // spelled so by GGUF
  WOK_TRY(unk, read_id(file, "unknown", "unk"));
  return wordpiece_json(tokens, cls, sep, unk);
}

}  // namespace

Result<std::unique_ptr<WholeTokenizer>> read_whole_tokenizer(const ModelFile& file) {
  const auto with_path = [&](const Error& error) {
    return Error{error.kind, fmt::format("'{}': {}", file.path(), error.message)};
  };
  WOK_TRY(json, read_json(file));
  WOK_TRY(lowercase, file.get_int(kLowercaseKey));
  if (lowercase.value_or(0) != 0 && !folds_case(json)) {
    return unsupported(
        fmt::format("'{}' lower-cases texts before its tokenizer does (do_lower_case in "
                    "sentence_bert_config.json), which wok does not do",
                    file.path()));
  }
  auto made = WholeTokenizer::create(json);
  if (!made.ok()) return with_path(made.error());
  return made;
}

Status load_embedder(const std::shared_ptr<const ModelFile>& file, const LoadOptions& options,
                     ServedModel& served) {
  if (!options.draft_path.empty()) {
    return invalid("--draft-model guesses tokens, and this model generates none: leave it out");
  }
  if (options.engine.context_tokens > 0) {
    return invalid("--context is for models that generate; an encoder takes what it was made for");
  }
  WOK_TRY(tokenizer, read_whole_tokenizer(*file));
  if (tokenizer->vocab_size() > served.info.vocab) {
    return invalid(fmt::format("'{}': {} token texts for {} embedding rows; the file is damaged",
                               file->path(), tokenizer->vocab_size(), served.info.vocab));
  }
  served.pair_tokenizer = tokenizer.get();
  served.tokenizer = std::move(tokenizer);
  WOK_TRY(isa, choose_isa(options.isa));
  const int32_t threads = options.engine.threads;
  auto pool = std::make_unique<ComputePool>(threads > 0 ? threads : usable_cpus());
  const std::string packs = options.cache_dir.empty() ? "" : options.cache_dir + "/packs";
  WOK_TRY(model, load_encoder(file, *isa.kernels, {.pack_dir = packs, .pool = pool.get()}));
  file->release_pages();
  ::malloc_trim(0);  // making a tokenizer takes several times what it keeps
  served.embedder =
      std::make_unique<Embedder>(std::move(pool), std::move(model),
                                 Embedder::Options{.max_queued = options.engine.max_queued});
  return Ok{};
}

}  // namespace wok
