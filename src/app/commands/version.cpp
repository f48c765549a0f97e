// wok version [--cpu]
#include <memory>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "kernels/isa.h"

namespace wok::app {
namespace {

int show_version(bool cpu, const std::string& isa) {
  fmt::print("wok {}\n", WOK_VERSION);
  if (!cpu) return 0;
  const Result<IsaChoice> choice = choose_isa(isa);
  if (!choice.ok()) return fail(choice.error());
  fmt::print("cpu      {}\nkernels  {} ({})\n", choice->cpu, choice->name, choice->reason);
  for (const IsaOption& option : choice->options) {
    fmt::print("  {:<10} {:<4} {}\n", option.name, option.available ? "yes" : "no", option.reason);
  }
  return 0;
}

}  // namespace

void add_version_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("version", "Print the version, and what the CPU offers");
  const auto cpu = std::make_shared<bool>(false);
  const auto isa = std::make_shared<std::string>();
  command->add_flag("--cpu", *cpu, "which kernels were chosen on this machine, and why");
  context.setting(
      command, command->add_option("--isa", *isa, "force avx2, avxvnni, avx512, amx or reference"));
  command->footer(
      "Examples:\n  wok version\n  wok version --cpu\n  WOK_ISA=avx2 wok version --cpu");
  command->callback(
      [&context, cpu, isa] { context.action = [cpu, isa] { return show_version(*cpu, *isa); }; });
}

}  // namespace wok::app
