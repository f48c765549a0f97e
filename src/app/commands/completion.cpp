// wok completion SHELL: the script is made from the commands themselves, so it cannot lag behind.
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands/commands.h"

namespace wok::app {
namespace {

const std::set<std::string> kTakeModels = {"serve", "run", "compile", "show", "rm"};

struct Flag {
  std::string name;  // "--port"
  std::string description;
};

std::vector<Flag> flags_of(const CLI::App* app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back({"--" + name, option->get_description()});
    }
  }
  return flags;
}

std::string words_of(const CLI::App* root, const CLI::App* command) {
  std::string words;
  for (const CLI::App* app : {command, root}) {
    for (const Flag& flag : flags_of(app)) {
      if (words.find(flag.name + " ") == std::string::npos) words += flag.name + " ";
    }
  }
  return words;
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '[' || c == ']' || c == ':' || c == '\n' || c == '`' || c == '\\') {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

std::string bash(const CLI::App* root) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : root->get_subcommands({})) {
    names += command->get_name() + " ";
    std::string words = words_of(root, command);
    if (kTakeModels.count(command->get_name()) > 0) words += "$(wok list --names 2>/dev/null)";
    if (command->get_name() == "completion") words += "bash zsh fish";
    if (command->get_name() == "pull") words += "$(wok pull --names 2>/dev/null)";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), words);
  }
  return fmt::format(R"(# bash completion of wok:  source <(wok completion bash)
_wok() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W "{}{}" -- "$current") )
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
  if [[ $current == */* || ${{#COMPREPLY[@]}} -eq 0 ]]; then
    COMPREPLY+=( $(compgen -f -- "$current") )
  fi
  # A ':' splits words in bash: give back only what comes after it.
  if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$current"; fi
}}
complete -F _wok wok
)",
                     names, words_of(root, root), cases);
}

std::string zsh(const CLI::App* root) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : root->get_subcommands({})) {
    names += fmt::format("    '{}:{}'\n", command->get_name(), quoted(command->get_description()));
    std::string arguments;
    for (const CLI::App* app : {command, root}) {
      for (const Flag& flag : flags_of(app)) {
        if (app == root && (flag.name == "--help" || flag.name == "--version")) continue;
        arguments += fmt::format(" '{}[{}]'", flag.name, quoted(flag.description));
      }
    }
    if (kTakeModels.count(command->get_name()) > 0) {
      arguments +=
          " '1:model:{ compadd -- $(wok list --names 2>/dev/null); _files -g \"*.gguf\" }'";
    }
    if (command->get_name() == "completion") arguments += " '1:shell:(bash zsh fish)'";
    cases += fmt::format("    {}) _arguments{} ;;\n", command->get_name(), arguments);
  }
  return fmt::format(R"(#compdef wok
# zsh completion of wok:  source <(wok completion zsh)
_wok() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
compdef _wok wok
)",
                     names, cases);
}

std::string fish(const CLI::App* root) {
  std::string out =
      "# fish completion of wok:  wok completion fish | source\ncomplete -c wok -e\n"
      "complete -c wok -n __fish_use_subcommand -f\n";
  for (const Flag& flag : flags_of(root)) {
    out += fmt::format("complete -c wok -l {} -d '{}'\n", flag.name.substr(2),
                       quoted(flag.description));
  }
  for (const CLI::App* command : root->get_subcommands({})) {
    const std::string& name = command->get_name();
    out += fmt::format("complete -c wok -n __fish_use_subcommand -a {} -d '{}'\n", name,
                       quoted(command->get_description()));
    const std::string here = fmt::format("-n '__fish_seen_subcommand_from {}'", name);
    for (const Flag& flag : flags_of(command)) {
      out += fmt::format("complete -c wok {} -l {} -d '{}'\n", here, flag.name.substr(2),
                         quoted(flag.description));
    }
    if (kTakeModels.count(name) > 0) {
      out += fmt::format("complete -c wok {} -a '(wok list --names 2>/dev/null)'\n", here);
    }
    if (name == "completion")
      out += fmt::format("complete -c wok {} -f -a 'bash zsh fish'\n", here);
  }
  return out;
}

const std::map<std::string, std::function<std::string(const CLI::App*)>>& shells() {
  static const std::map<std::string, std::function<std::string(const CLI::App*)>> list = {
      {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
  return list;
}

}  // namespace

void add_completion_command(CLI::App& root, Context& context) {
  CLI::App* command = root.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(wok completion bash)\n"
      "  source <(wok completion zsh)\n"
      "  wok completion fish > ~/.config/fish/completions/wok.fish");
  command->callback([&root, &context, shell] {
    context.action = [&root, shell] {
      fmt::print("{}", shells().at(*shell)(&root));
      return 0;
    };
  });
}

}  // namespace wok::app
