// From a path to a served model: file, kernels, weights, tokenizer, template, engine.
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <future>

#include "api/draft_file.h"
#include "api/load_embedder.h"
#include "api/served_model.h"
#include "api/tokenizer_data.h"
#include "base/log.h"
#include "kernels/isa.h"
#include "models/architecture.h"
#include "models/encoder_config.h"
#include "models/model.h"
#include "models/read_info.h"

namespace wok {
namespace {

Status load_template(const ModelFile& file, ServedModel& served) {
  const Tokenizer& tokenizer = *served.tokenizer;
  std::string source = served.info.chat_template;
  if (source.empty()) {
    const bool chatml = tokenizer.id_of("<|im_start|>") >= 0 && tokenizer.id_of("<|im_end|>") >= 0;
    DefaultTemplate usual = default_chat_template(chatml);
    source = std::move(usual.source);
    served.chat_stops = std::move(usual.stops);
    log::info("'{}' carries no chat template: {}", file.path(),
              chatml ? "ChatML is used" : "a base model, asked as a transcript of questions");
  }
  const auto text = [&](int32_t id) {
    return id < 0 ? std::string() : std::string(tokenizer.piece(id, true));
  };
  WOK_TRY(chat_template,
          ChatTemplate::create(source, text(tokenizer.bos_id()), text(tokenizer.eos_id())));
  served.chat_template = std::move(chat_template);
  return Ok{};
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Tokenizer and template.
Status load_text(const ModelFile& file, TokenizerData data, ServedModel& served) {
  WOK_TRY(tokenizer, Tokenizer::create(std::move(data)));
  served.tokenizer = std::move(tokenizer);
  if (served.tokenizer->vocab_size() > served.info.vocab) {
    return invalid(fmt::format("'{}': {} token texts for {} embedding rows; the file is damaged",
                               file.path(), served.tokenizer->vocab_size(), served.info.vocab));
  }
  return load_template(file, served);
}

}  // namespace

Result<std::unique_ptr<ServedModel>> load_model(const std::string& path, const std::string& id,
                                                const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (!options.draft_path.empty() && options.engine.speculation == Speculation::off) {
    return invalid("--draft-model guesses tokens and --speculate off forbids it: leave one out");
  }
  WOK_TRY(opened, ModelFile::open(path));
  auto file = std::make_shared<const ModelFile>(std::move(opened));
  auto served = std::make_unique<ServedModel>();
  served->id = id;
  served->created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  WOK_TRY(info, read_model_info(*file));
  served->info = std::move(info);
  if (is_encoder(*file)) {
    // The decoder's reader says what such a model is for.
    if (!options.embeddings) return read_decoder_config(*file).error();
    WOK_RETURN_IF_ERROR(load_embedder(file, options, *served));
    log::info("loaded {} ({}, {}) in {:.2f} s", id, served->info.architecture, served->info.pooling,
              seconds_since(begin));
    return served;
  }
  // A tokenizer that wok does not know, or a draft model that does not fit, is refused before any
  // weight is packed.
  WOK_TRY(data, read_tokenizer_data(*file));
  std::shared_ptr<const ModelFile> draft_file;
  if (!options.draft_path.empty()) {
    WOK_TRY(draft, open_draft_file(options.draft_path, path, data));
    draft_file = std::move(draft);
  }
  // The text side takes as long as the weights do, on one thread: beside them, where the system
  // gives another thread, else when its result is asked for.
  std::future<Status> text = std::async(std::launch::async | std::launch::deferred,
                                        [&] { return load_text(*file, std::move(data), *served); });
  WOK_TRY(isa, choose_isa(options.isa));
  EngineOptions engine_options = options.engine;
  const int32_t threads = engine_options.threads;
  auto pool = std::make_unique<ComputePool>(threads > 0 ? threads : usable_cpus());
  const std::string packs = options.cache_dir.empty() ? "" : options.cache_dir + "/packs";
  const ModelOptions model_options{
      .pack_dir = packs, .pool = pool.get(), .context_tokens = engine_options.context_tokens};
  if (draft_file != nullptr) {
    WOK_TRY(draft, Model::load(draft_file, *isa.kernels, model_options));
    draft_file->release_pages();
    served->draft_weights = std::move(draft);
    engine_options.draft_model = served->draft_weights.get();
  }
  WOK_TRY(model, Model::load(file, *isa.kernels, model_options));
  served->weights = std::move(model);
  if (const std::string& problem = served->weights->packed().not_kept(); !problem.empty()) {
    log::warn("packed weights are not kept, so every start packs them again: {}", problem);
  }
  WOK_RETURN_IF_ERROR(text.get());
  engine_options.end_ids = served->tokenizer->end_ids();
  file->release_pages();  // the metadata, of which the text side keeps copies
  ::malloc_trim(0);       // making a tokenizer takes several times what it keeps
  WOK_TRY(engine, Engine::create(*served->weights, engine_options, std::move(pool)));
  served->engine = std::move(engine);
  log::info("loaded {} ({}, {} kernels) in {:.2f} s", id, served->info.architecture, isa.name,
            seconds_since(begin));
  return served;
}

}  // namespace wok
