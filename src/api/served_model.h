// One model as the API sees it: its text side and its engine. Owned by whoever loaded it (app,
// tests). It generates text (engine) or makes vectors or scores (embedder), not both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/embedder.h"
#include "engine/engine.h"
#include "models/model_info.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/whole_tokenizer.h"

namespace wok {

struct ServedModel {
  std::string id;  // the name clients use
  ModelInfo info;
  int64_t created_unix_s = 0;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null: chat endpoints answer 400 and say why
  std::vector<std::string> chat_stops;   // end every chat answer; with a default template only
  std::shared_ptr<Model> weights;        // keeps what the engine reads alive; may be null in tests
  std::shared_ptr<Model> draft_weights;  // of a smaller model that guesses; may be null
  // Of a model that makes vectors: the tokenizer that `tokenizer` is, where it knows pairs.
  const WholeTokenizer* pair_tokenizer = nullptr;
  // Declared last: destroyed first. One of them is null.
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Embedder> embedder;

  int32_t context_tokens() const {
    return engine ? engine->context_tokens() : embedder->model().context_tokens();
  }
  EngineStats stats() const { return engine ? engine->stats() : embedder->stats(); }
  void drain() { engine ? engine->drain() : embedder->drain(); }
};

struct LoadOptions {
  EngineOptions engine;
  std::string draft_path;   // GGUF file of a smaller model that guesses (draft_file.h); "": none
  std::string cache_dir;    // pack files; "" = do not keep any
  std::string isa;          // "" = best this CPU has
  bool embeddings = false;  // the caller has a use for models that make vectors or scores, too
};

// Loads a GGUF file (the first shard of a split one) or a Hugging Face folder, packs its weights,
// starts an engine.
// Errors end with the cause and the way out.
Result<std::unique_ptr<ServedModel>> load_model(const std::string& path, const std::string& id,
                                                const LoadOptions& options);

}  // namespace wok
