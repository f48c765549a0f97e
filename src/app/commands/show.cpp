// wok show MODEL
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/model_report.h"
#include "app/model_source.h"
#include "models/pack_id.h"
#include "models/read_info.h"

namespace wok::app {
namespace {

// One line a pack file that was made of the model, for whatever kernels.
std::string packs_of(const store::Store& store, const std::string& path) {
  const Result<ModelFile> file = ModelFile::open(path);
  if (!file.ok()) return "";
  const Result<std::string> id = packed_model_id(*file);
  if (!id.ok()) return "";  // not a model wok computes
  std::map<std::string, std::string> lines;
  std::error_code error;
  for (std::filesystem::directory_iterator it(store.packs_folder(), error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(*id + "-") || it->path().extension() != ".pack") continue;
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(it->path(), ignored);
    const std::string kernels = it->path().stem().string().substr(id->size() + 1);
    lines[kernels] =
        fmt::format("{:<15} {}: {}, {}\n", "compiled for", kernels,
                    ignored ? "unreadable" : store::human_bytes(bytes), it->path().string());
  }
  std::string out;
  for (const auto& [kernels, line] : lines) out += line;
  return out.empty() ? fmt::format("{:<15} no kernels yet\n", "compiled for") : out;
}

int show_model(const Context& context, const std::string& name, int32_t context_tokens) {
  const Result<store::ResolvedModel> model = find_model(context, name);
  if (!model.ok()) return fail(model.error());
  const Result<ModelInfo> info = read_model_info(model->path);
  if (!info.ok()) return fail(info.error());
  const Result<store::Store> store = context.open_store();
  if (!store.ok()) return fail(store.error());
  fmt::print("file            {}\n{}{}", model->path, packs_of(*store, model->path),
             model_report(*info, context_tokens));
  return 0;
}

}  // namespace

void add_show_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("show", "Say what is in a model and what it needs");
  const auto name = std::make_shared<std::string>();
  const auto tokens = std::make_shared<int32_t>(0);
  command->add_option("MODEL", *name, "a model's name, or the path of a .gguf file or folder")
      ->required();
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
