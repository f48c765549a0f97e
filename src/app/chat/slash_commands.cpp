#include "app/chat/slash_commands.h"

#include <fmt/format.h>

#include "app/model_report.h"

namespace wok::app {

struct SlashCommands::Entry {
  const char* name;
  const char* usage;
  const char* help;
  bool (*run)(Chat& chat, const std::string& arguments);  // false: leave
};

const SlashCommands::Entry SlashCommands::kTable[] = {
    {"help", "/help", "this list", [](Chat&, const std::string&) { return help(), true; }},
    {"bye", "/bye", "leave (Ctrl-D does too)", [](Chat&, const std::string&) { return false; }},
    {"clear", "/clear", "forget the conversation",
     [](Chat& chat, const std::string&) { return clear(chat), true; }},
    {"system", "/system TEXT", "set the system message; without TEXT, none",
     [](Chat& chat, const std::string& text) { return system(chat, text), true; }},
    {"set", "/set NAME VALUE", "set a parameter; without arguments, show them",
     [](Chat& chat, const std::string& arguments) { return set(chat, arguments), true; }},
    {"show", "/show", "say what is in the model",
     [](Chat& chat, const std::string&) { return show(chat), true; }},
};

bool SlashCommands::run(Chat& chat, const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(1, space - 1);
  const size_t begin = std::min(line.find_first_not_of(' ', space), line.size());
  for (const Entry& entry : kTable) {
    if (name == entry.name) return entry.run(chat, line.substr(begin));
  }
  fmt::print(stderr, "error: no command /{}; see /help\n", name);
  return true;
}

void SlashCommands::help() {
  for (const Entry& entry : kTable) fmt::print("  {:<18} {}\n", entry.usage, entry.help);
  fmt::print(
      "  {:<18} a message of several lines, up to the next \"\"\"\n"
      "  {:<18} stop the answer\n",
      "\"\"\"", "Ctrl-C");
}

void SlashCommands::clear(Chat& chat) {
  chat.messages_.clear();
  fmt::print("The conversation is forgotten.\n");
}

void SlashCommands::system(Chat& chat, const std::string& text) {
  chat.options_.system = text;
  fmt::print("{}\n", text.empty() ? "No system message any more." : "System message set.");
}

void SlashCommands::set(Chat& chat, const std::string& arguments) {
  ChatParameters& parameters = chat.options_.parameters;
  const size_t space = std::min(arguments.find(' '), arguments.size());
  const std::string name = arguments.substr(0, space);
  if (name.empty()) {
    for (const Parameter& p : chat_parameters()) {
      fmt::print("  {:<20} {:<14} {}\n", p.name, p.get(parameters), p.help);
    }
    return;
  }
  const Parameter* parameter = find_parameter(name);
  if (parameter == nullptr) {
    fmt::print(stderr, "error: no parameter '{}'; /set shows them all\n", name);
    return;
  }
  const std::string value = space < arguments.size() ? arguments.substr(space + 1) : "";
  const Status status = parameter->set(parameters, value);
  if (!status.ok()) fmt::print(stderr, "error: {}: {}\n", name, status.error().message);
}

void SlashCommands::show(Chat& chat) {
  fmt::print("{}", model_report(chat.model_.info, chat.model_.engine->context_tokens()));
}

}  // namespace wok::app
