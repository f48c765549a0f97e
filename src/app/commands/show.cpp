// wok show MODEL
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_report.h"
#include "app/model_source.h"
#include "models/read_info.h"

namespace wok::app {
namespace {

int show_model(const Context& context, const std::string& name, int32_t context_tokens) {
  const Result<store::ResolvedModel> model = find_model(context, name);
  if (!model.ok()) return fail(model.error());
  const Result<ModelInfo> info = read_model_info(model->path);
  if (!info.ok()) return fail(info.error());
  fmt::print("file            {}\n{}", model->path, model_report(*info, context_tokens));
  return 0;
}

}  // namespace

void add_show_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("show", "Say what is in a model and what it needs");
  const auto name = std::make_shared<std::string>();
  const auto tokens = std::make_shared<int32_t>(0);
  command->add_option("MODEL", *name, "a model's name, or the path of a .gguf file")->required();
  context.setting(command, command
                               ->add_option("--context", *tokens,
                                            "context to compute the memory for (default: the "
                                            "model's own)")
                               ->check(CLI::NonNegativeNumber)
                               ->type_name("TOKENS"));
  command->footer("Examples:\n  wok show smollm2\n  wok show ./model.gguf --context 4096");
  command->callback([&context, name, tokens] {
    context.action = [&context, name, tokens] { return show_model(context, *name, *tokens); };
  });
}

}  // namespace wok::app
