// wok eval: how well a model predicts a text, alone or against the one it was made from.
#include <unistd.h>

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "api/tokenizer_data.h"
#include "app/commands/commands.h"
#include "app/corpus.h"
#include "app/interrupt.h"
#include "app/model_source.h"
#include "bench/eval.h"
#include "kernels/isa.h"

namespace wok::app {
namespace {

struct EvalCommand {
  std::string model, against, text, corpus, isa, kv_format = "f16";
  int32_t chunk_tokens = 512, chunks = 32, threads = 0;
  bool fast_prefill = false, json = false;
};

// A model's file and text side: all that can be wrong with a pair shows before weights are packed.
struct Source {
  std::string id;
  std::shared_ptr<const ModelFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int32_t> tokens;  // of the text
};

Result<Source> open(const Context& context, const std::string& name, const std::string& text) {
  WOK_TRY(found, find_model(context, name));
  WOK_TRY(file, ModelFile::open(found.path));
  WOK_TRY(data, read_tokenizer_data(file));
  WOK_TRY(tokenizer, Tokenizer::create(std::move(data)));
  WOK_TRY(tokens, tokenizer->encode(text, true, false));
  return Source{found.id, std::make_shared<const ModelFile>(std::move(file)), std::move(tokenizer),
                std::move(tokens)};
}

Result<Corpus> read_text(const EvalCommand& o) {
  // A token is four bytes or so; sixteen times that is enough for any text.
  constexpr size_t kMostBytes = size_t{64} << 20;
  const size_t wanted =
      o.chunks > 0 ? size_t{64} * static_cast<size_t>(o.chunks) * o.chunk_tokens : kMostBytes;
  const size_t bytes = std::min(wanted, kMostBytes);
  return o.text.empty() ? read_corpus(o.corpus.empty() ? "python-docs" : o.corpus, bytes)
                        : read_text_file(o.text, bytes);
}

Result<int> evaluate(const Context& context, const EvalCommand& o) {
  const KvFormat* kv = find_kv_format(o.kv_format);
  if (kv == nullptr) {
    return invalid(fmt::format("--kv-format is '{}', expected f16 or bf16", o.kv_format));
  }
  WOK_TRY(corpus, read_text(o));
  WOK_TRY(isa, choose_isa(o.isa.empty() ? environment("WOK_ISA") : o.isa));
  WOK_TRY(source, open(context, o.model, corpus.text));
  std::optional<Source> other;
  if (!o.against.empty()) {
    WOK_TRY(against, open(context, o.against, corpus.text));
    if (against.tokens != source.tokens) {
      return invalid(
          fmt::format("'{}' and '{}' cut the text into different tokens, so their "
                      "probabilities cannot be compared; take two models of one family",
                      source.id, against.id));
    }
    other = std::move(against);
  }
  ComputePool pool(o.threads > 0 ? o.threads : usable_cpus());
  WOK_TRY(store, context.open_store());
  const ModelOptions loading{.pack_dir = store.folder() + "/packs", .pool = &pool};
  WOK_TRY(model, Model::load(source.file, *isa.kernels, loading));
  std::unique_ptr<Model> against;
  if (other) {
    WOK_TRY(reference_model, Model::load(other->file, *isa.kernels, loading));
    against = std::move(reference_model);
  }
  const bench::EvalModel candidate{model.get(), kv, o.fast_prefill};
  const bench::EvalModel reference{against.get(), &kKvFormat_f16, false};
  const bench::EvalOptions options{
      .chunk_tokens = o.chunk_tokens,
      .chunks = o.chunks,
      .bos_id = source.tokenizer->add_bos() ? source.tokenizer->bos_id() : -1};
  const Interrupt interrupt;
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto report =
      bench::evaluate(candidate, against ? &reference : nullptr, source.tokens, options, pool,
                      [&](int32_t done, int32_t of) {
                        if (terminal)
                          fmt::print(stderr, "\r\x1b[Kchunk {} of {}", std::min(done + 1, of), of);
                        if (terminal && done == of) fmt::print(stderr, "\r\x1b[K");
                        return !interrupt.pending();
                      });
  if (!report.ok() && report.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!report.ok()) return report.error();
  const std::string beside = other ? other->id : "";
  if (o.json) {
    fmt::print("{}", bench::eval_json(*report, source.id, beside, corpus.name));
  } else {
    fmt::print("{}{}, on {}\n\n{}", source.id, other ? " against " + beside : "", corpus.name,
               bench::eval_table(*report));
  }
  return 0;
}

int run_eval(const Context& context, const EvalCommand& o) {
  const Result<int> code = evaluate(context, o);
  return code.ok() ? *code : fail(code.error());
}

}  // namespace

void add_eval_command(CLI::App& root, Context& context) {
  CLI::App* command =
      root.add_subcommand("eval", "Measure how well a model predicts a text, and what it lost");
  const auto o = std::make_shared<EvalCommand>();
  command->add_option("MODEL", o->model,
                      "a model's name, or the path of a .gguf file or folder (default: smollm2)");
  command
      ->add_option("--against", o->against,
                   "a model to compare with, such as the one MODEL was quantized from")
      ->type_name("MODEL");
  CLI::Option* text = command->add_option("--text", o->text, "a text file in UTF-8");
  text->type_name("FILE");
  command
      ->add_option("--corpus", o->corpus, "python-docs: what Debian's python3-doc holds (default)")
      ->type_name("NAME")
      ->excludes(text);
  command->add_option("--chunk", o->chunk_tokens, "tokens of a chunk; its second half is scored")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  command->add_option("--chunks", o->chunks, "at most so many chunks; 0: the whole text")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--threads", o->threads, "compute threads (default: the CPUs there are)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--fast-prefill", o->fast_prefill,
                    "MODEL computes with weights rounded to 8 bits (docs/adr/0010)");
  command->add_option("--kv-format", o->kv_format, "of MODEL: f16 or bf16")->capture_default_str();
  command->add_option("--isa", o->isa, "force avx2, avxvnni, avx512, amx or reference [WOK_ISA]");
  command->add_flag("--json", o->json, "print JSON");
  command->footer(
      "Perplexity goes by chunks as llama.cpp's does; ± is half a 95 % interval. Compare figures\n"
      "of one text and one family of models only.\n\n"
      "Examples:\n"
      "  wok eval smollm2 --text book.txt\n"
      "  wok eval small-q4.gguf --against small-f16.gguf --text book.txt --json\n"
      "  wok eval smollm2 --against smollm2 --fast-prefill --text book.txt");
  command->callback(
      [&context, o] { context.action = [&context, o] { return run_eval(context, *o); }; });
}

}  // namespace wok::app
