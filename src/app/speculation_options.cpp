#include "app/speculation_options.h"

#include "app/model_source.h"

namespace wok::app {

void add_speculation_options(CLI::App* command, Context& context, Speculation& speculation,
                             int32_t& draft_tokens, std::string& draft_model) {
  context.setting(command,
                  command
                      ->add_option_function<std::string>(
                          "--speculate",
                          [&speculation](const std::string& name) {
                            const Result<Speculation> parsed = parse_speculation(name);
                            if (!parsed.ok()) {
                              throw CLI::ValidationError("--speculate", parsed.error().message);
                            }
                            speculation = *parsed;
                          },
                          "guess tokens and check several a step, which changes no answer: off, or "
                          "lookup (what followed earlier in the text)")
                      ->default_str(speculation_name(speculation)));
  context.setting(command,
                  command
                      ->add_option("--draft-tokens", draft_tokens,
                                   "guesses that a step checks, of all its sequences, at most")
                      ->check(CLI::Range(1, 15))
                      ->capture_default_str());
  context.setting(command,
                  command
                      ->add_option("--draft-model", draft_model,
                                   "a smaller model of the same vocabulary that guesses what "
                                   "follows: a name, or the path of a .gguf file or folder")
                      ->type_name("MODEL"));
}

bool find_draft_model(const Context& context, std::string& draft_model) {
  if (draft_model.empty()) return true;
  const Result<store::ResolvedModel> found = find_model(context, draft_model);
  if (!found.ok()) {
    fail(found.error());
    return false;
  }
  draft_model = found->path;
  return true;
}

}  // namespace wok::app
