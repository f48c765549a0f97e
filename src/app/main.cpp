// wok: parses the command line, fills settings from environment and file, runs the command.
// Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/commands/commands.h"
#include "app/context.h"
#include "app/settings.h"
#include "base/log.h"

namespace wok::app {
namespace {

int usage_error(const std::string& message, const CLI::App* command) {
  std::string path = command->get_name();
  while ((command = command->get_parent()) != nullptr) path = command->get_name() + " " + path;
  fmt::print(stderr, "error: {}\nSee {} --help.\n", message, path);
  return kExitUsage;
}

void add_global_options(CLI::App& root, Context& context) {
  root.add_option("--config", context.config_path,
                  "TOML file with settings (default: wok/config.toml in the XDG config folder)")
      ->type_name("FILE");
  context.setting(&root, root.add_option("--cache-dir", context.cache_dir,
                                         "folder of models (default: wok in the XDG cache folder)")
                             ->type_name("DIR"));
  context.setting(&root,
                  root.add_option("--log-level", context.log_level,
                                  "what is logged to stderr (default: info for serve, else warn)")
                      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
                      ->capture_default_str());
}

// Settings of the environment can be wrong too: they are applied before the action runs.
int run_command(CLI::App& root, Context& context) {
  const auto chosen = root.get_subcommands();
  if (chosen.empty()) {
    fmt::print("{}", root.help());
    return 0;
  }
  if (const Status status = apply_settings(context, &root, chosen.front()); !status.ok()) {
    return usage_error(status.error().message, chosen.front());
  }
  if (context.log_level.empty()) {
    context.log_level = chosen.front()->get_name() == "serve" ? "info" : "warn";
  }
  log::configure(context.log_level);
  return context.action();
}

int run(int argc, char** argv) {
  CLI::App root("wok serves language models on CPUs.", "wok");
  Context context;
  root.set_version_flag("--version", std::string("wok ") + WOK_VERSION);
  root.require_subcommand(0, 1);
  add_global_options(root, context);
  root.footer(
      "Examples:\n"
      "  wok serve                                serve the default model on 127.0.0.1:8080\n"
      "  wok run smollm2 \"Name three colours.\"    one answer\n"
      "  wok run gemma3:270m                      a chat\n"
      "Each command has its own --help.");
#define WOK_ADD_COMMAND(name) add_##name##_command(root, context);
  WOK_COMMANDS(WOK_ADD_COMMAND)
#undef WOK_ADD_COMMAND
  for (CLI::App* command : root.get_subcommands({})) {
    command->fallthrough();
    for (CLI::App* nested : command->get_subcommands({})) nested->fallthrough();
  }

  if (argc > 1 && argv[1][0] != '-') {
    const auto all = root.get_subcommands({});
    const auto named = [&](const CLI::App* command) { return command->check_name(argv[1]); };
    if (std::none_of(all.begin(), all.end(), named)) {
      std::string names;
      for (const CLI::App* command : all) names += " " + command->get_name();
      return usage_error(fmt::format("unknown command '{}'; there are:{}", argv[1], names), &root);
    }
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return root.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    const CLI::App* chosen = &root;  // the innermost command that was reached
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    return usage_error(error.what(), chosen);
  }
  return run_command(root, context);
}

}  // namespace
}  // namespace wok::app

int main(int argc, char** argv) {
  // A write over the limit on file sizes is an error that says so, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Otherwise the first large block that is freed makes malloc take later ones from the heap, where
  // holes stay resident and calloc writes its zeroes (LazyVector relies on fresh ones).
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  try {
    return wok::app::run(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory. A smaller --context or --kv-memory needs less.\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return 1;
}
