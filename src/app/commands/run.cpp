// wok run [MODEL] [PROMPT...]: one answer, or a chat.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/chat/answer.h"
#include "app/chat/chat.h"
#include "app/commands/commands.h"
#include "app/model_source.h"
#include "app/settings.h"
#include "app/speculation_options.h"

namespace wok::app {
namespace {

struct RunOptions {
  std::string model;
  std::vector<std::string> prompt;
  ChatOptions chat{.parameters = default_chat_parameters(), .system = "", .history_path = ""};
  LoadOptions load;
};

// $XDG_STATE_HOME/wok/history
std::string history_path() {
  std::string folder = environment("XDG_STATE_HOME");
  if (!folder.starts_with('/')) folder = environment("HOME") + "/.local/state";
  return folder.starts_with('/') ? folder + "/wok/history" : "";
}

// A pipe or a file is read to its end; a socket or /dev/null, as daemons give, is not waited for.
bool stdin_has_text() {
  struct stat info {};
  return ::fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode));
}

std::string read_stdin() {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

int one_answer(ServedModel& model, const ChatOptions& options, const std::string& prompt) {
  Interrupt interrupt;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const nlohmann::json messages = {{{"role", "user"}, {"content", prompt}}};
  const Result<std::vector<int32_t>> tokens =
      prompt_tokens(model, with_system(options.system, messages));
  if (!tokens.ok()) return fail(tokens.error());
  const Result<Answer> answer = generate(
      model, *tokens, options.parameters,
      [&](std::string_view piece) { print_text(piece, terminal); }, interrupt.flag());
  if (!answer.ok()) return fail(answer.error());
  print_text("\n", terminal);
  if (answer->finish == FinishReason::kLength) {
    fmt::print(stderr, "(cut after {} tokens; more: --max-tokens N, as far as the context goes)\n",
               answer->generated_tokens);
  }
  if (options.verbose) fmt::print(stderr, "{}\n", timing_line(*answer));
  return answer->finish == FinishReason::kAbort ? kExitInterrupted : 0;
}

int run_model(const Context& context, RunOptions options) {
  std::string prompt = fmt::format("{}", fmt::join(options.prompt, " "));
  const bool interactive = prompt.empty() && ::isatty(STDIN_FILENO) == 1;
  if (!interactive && stdin_has_text()) {
    const std::string text = read_stdin();
    if (!prompt.empty() && !text.empty()) prompt += "\n\n";
    prompt += text;
  }
  if (!interactive && prompt.empty()) {
    return fail(
        invalid("no prompt: give one as an argument or through a pipe, or run this on a "
                "terminal for a chat"));
  }
  const Result<store::ResolvedModel> found = find_model(context, options.model, Missing::kIsPulled);
  if (!found.ok()) {
    fail(found.error());
    return found.error().kind == ErrorKind::kCancelled ? kExitInterrupted : 1;
  }
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  options.load.cache_dir = store->folder();
  if (!find_draft_model(context, options.load.draft_path)) return 1;
  options.load.engine.max_sequences = 1;
  Result<std::unique_ptr<ServedModel>> model = load_model(found->path, found->id, options.load);
  if (!model.ok()) return fail(model.error());
  if (!interactive) return one_answer(**model, options.chat, prompt);

  options.chat.history_path = history_path();
  Interrupt interrupt;
  return Chat(**model, options.chat, interrupt).run();
}

void add_sampling_flags(CLI::App* command, Context& context, RunOptions& options) {
  for (const Parameter& parameter : chat_parameters()) {
    std::string flag = "--" + std::string(parameter.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    // A list, because --stop may come several times; each takes one value and leaves the prompt.
    CLI::Option* option = command->add_option_function<std::vector<std::string>>(
        flag,
        [&options, &parameter, flag](const std::vector<std::string>& values) {
          for (const std::string& value : values) {
            const Status status = parameter.set(options.chat.parameters, value);
            if (!status.ok()) throw CLI::ValidationError(flag, status.error().message);
          }
        },
        std::string(parameter.help));
    option->allow_extra_args(false)->type_name("VALUE")->default_str(
        parameter.get(options.chat.parameters));
    context.setting(command, option);
  }
  context.setting(command,
                  command->add_flag("--ignore-eos", options.chat.parameters.sampling.ignore_eos,
                                    "go on after the model's end token"));
}

}  // namespace

void add_run_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("run", "Chat with a model, or ask it once");
  const auto options = std::make_shared<RunOptions>();
  const auto setting = [&](CLI::Option* option) { context.setting(command, option); };
  command->add_option("MODEL", options->model,
                      "a model's name, pulled if it is missing (wok pull --help), or the path of a "
                      ".gguf file (default: smollm2)");
  command->add_option("PROMPT", options->prompt, "what to ask; what a pipe brings comes after it");
  setting(command->add_option("--system", options->chat.system, "system message"));
  add_sampling_flags(command, context, *options);
  setting(command
              ->add_option("--context", options->load.engine.context_tokens,
                           "context window; 0 = what the model was trained for")
              ->check(CLI::NonNegativeNumber)
              ->type_name("TOKENS"));
  setting(add_size_option(command, "--kv-memory", options->load.engine.kv_bytes,
                          "memory for the KV cache; 0 = what one conversation needs"));
  setting(
      command->add_flag("--fast-prefill", options->load.engine.fast_prefill,
                        "round weights to 8 bits for prompts: a quarter faster (docs/adr/0010)"));
  setting(command
              ->add_option("--threads", options->load.engine.threads,
                           "compute threads; 0 = the CPUs this process may use")
              ->check(CLI::Range(0, 4096)));
  add_speculation_options(command, context, options->load.engine.speculation,
                          options->load.engine.draft_tokens, options->load.draft_path);
  setting(command->add_option("--isa", options->load.isa,
                              "force avx2, avxvnni, avx512, amx or reference kernels"));
  setting(command->add_flag("--verbose", options->chat.verbose,
                            "time to the first token and tokens/s, on stderr"));
  command->footer(
      "Examples:\n"
      "  wok run smollm2                                  a chat; /help lists its commands\n"
      "  wok run smollm2 \"Name three primary colours.\"    one answer\n"
      "  wok run gemma3:270m \"Sum this up:\" < notes.txt   the file comes after the prompt\n"
      "  wok run qwen3:0.6b                               from Ollama's registry\n"
      "  wok run ./model.gguf --temperature 0 --verbose \"Hello\"");
  command->callback([&context, options] {
    context.action = [&context, options] { return run_model(context, *options); };
  });
}

}  // namespace wok::app
