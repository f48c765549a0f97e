// wok serve [MODEL]: flags, environment and file into a ServeOptions; serve.cpp does the rest.
#include <memory>

#include "app/commands/commands.h"
#include "app/commands/serve.h"
#include "app/model_source.h"
#include "app/settings.h"
#include "app/speculation_options.h"

namespace wok::app {
namespace {

void add_network_flags(CLI::App* command, Context& context, ServeOptions& o) {
  const auto setting = [&](CLI::Option* option) { context.setting(command, option); };
  setting(command->add_option("--host", o.host, "address to listen on")->capture_default_str());
  setting(command->add_option("--port", o.port, "TCP port; 0 picks a free one")
              ->check(CLI::Range(0, 65535))
              ->capture_default_str());
  setting(command->add_option("--api-key", o.api_key,
                              "bearer key that clients must send (better: WOK_API_KEY or a file)"));
  setting(command->add_option("--api-key-file", o.api_key_file, "file of keys, one a line")
              ->type_name("FILE"));
  setting(command
              ->add_option("--max-connections", o.max_connections,
                           "open connections; more are refused with 503")
              ->check(CLI::Range(1, 1 << 20))
              ->capture_default_str());
  setting(add_size_option(command, "--max-body", o.max_body_bytes, "largest request body"));
  setting(command
              ->add_option("--request-timeout-s", o.request_timeout_s,
                           "a request that takes longer is ended; 0 = never")
              ->check(CLI::NonNegativeNumber)
              ->type_name("SECONDS"));
  setting(
      command
          ->add_option("--grace-s", o.grace_s, "after SIGTERM, time for running requests to finish")
          ->check(CLI::NonNegativeNumber)
          ->type_name("SECONDS"));
}

void add_engine_flags(CLI::App* command, Context& context, ServeOptions& o) {
  const auto setting = [&](CLI::Option* option) { context.setting(command, option); };
  setting(
      command
          ->add_option("--threads", o.threads, "compute threads; 0 = the CPUs this process may use")
          ->check(CLI::Range(0, 4096)));
  setting(command
              ->add_option("--context", o.context_tokens,
                           "context window; 0 = what the model was trained for")
              ->check(CLI::NonNegativeNumber)
              ->type_name("TOKENS"));
  setting(add_size_option(command, "--kv-memory", o.kv_bytes,
                          "memory for the KV cache; 0 = a share of what is free"));
  setting(command->add_option("--max-sequences", o.max_sequences, "sequences that run at once")
              ->check(CLI::Range(1, 65536))
              ->capture_default_str());
  setting(command
              ->add_option("--max-queued", o.max_queued,
                           "requests that wait; more are refused with 429")
              ->check(CLI::NonNegativeNumber)
              ->capture_default_str());
  setting(command->add_option("--token-budget", o.token_budget, "tokens of one step at most")
              ->check(CLI::Range(1, 1 << 20))
              ->capture_default_str());
  setting(command
              ->add_option("--itl-target-ms", o.itl_target_ms,
                           "time between two tokens of a stream to aim for; 0 = automatic")
              ->check(CLI::NonNegativeNumber)
              ->type_name("MS"));
  setting(
      command->add_flag("--fast-prefill", o.fast_prefill,
                        "round weights to 8 bits for prompts: a quarter faster (docs/adr/0010)"));
  setting(command->add_flag("--prefix-cache,!--no-prefix-cache", o.prefix_cache,
                            "compute shared prefixes once (on by default)"));
  add_speculation_options(command, context, o.speculation, o.draft_tokens, o.draft_model);
  setting(
      command->add_option("--isa", o.isa, "force avx2, avxvnni, avx512, amx or reference kernels"));
}

int serve(const Context& context, ServeOptions options, const std::string& model) {
  const Result<store::ResolvedModel> resolved = find_model(context, model, Missing::kIsPulled);
  if (!resolved.ok()) {
    fail(resolved.error());
    return resolved.error().kind == ErrorKind::kCancelled ? kExitInterrupted : 1;
  }
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  if (!find_draft_model(context, options.draft_model)) return 1;
  options.model_path = resolved->path;
  options.model_id = resolved->id;
  options.cache_dir = store->folder();
  options.log_level = context.log_level;
  const Result<int> done = run_serve(options);
  return done.ok() ? *done : fail(done.error());
}

}  // namespace

void add_serve_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("serve", "Serve a model over HTTP (OpenAI's API)");
  const auto options = std::make_shared<ServeOptions>();
  const auto model = std::make_shared<std::string>();
  context.setting(command,
                  command->add_option("MODEL,--model", *model,
                                      "a model's name, or the path of a .gguf file or folder "
                                      "(default: smollm2, pulled if missing)"));
  add_network_flags(command, context, *options);
  add_engine_flags(command, context, *options);
  command->footer(
      "Examples:\n"
      "  wok serve\n"
      "  wok serve gemma3:270m --port 9000\n"
      "  wok serve ./model.gguf --context 8192 --kv-memory 2G\n"
      "  wok serve ./all-MiniLM-L6-v2      (embeddings, from a Hugging Face folder)\n"
      "  wok serve ./big.gguf --draft-model ./small.gguf\n"
      "  WOK_API_KEY=secret wok serve --host 0.0.0.0\n"
      "Settings come from flags, then the environment, then the TOML file:\n"
      "  [serve]\n"
      "  port = 9000\n"
      "  kv_memory = \"2G\"");
  command->callback([&context, options, model] {
    context.action = [&context, options, model] { return serve(context, *options, *model); };
  });
}

}  // namespace wok::app
