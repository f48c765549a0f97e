#include "app/chat/chat.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "app/chat/answer.h"
#include "app/chat/slash_commands.h"

namespace wok::app {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kPrompt = ">>> ";
constexpr const char* kMorePrompt = "... ";

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\n") == std::string::npos;
}

}  // namespace

nlohmann::json with_system(const std::string& system, const nlohmann::json& messages) {
  nlohmann::json all = nlohmann::json::array();
  if (!system.empty()) all.push_back({{"role", "system"}, {"content", system}});
  for (const nlohmann::json& message : messages) all.push_back(message);
  return all;
}

void print_text(std::string_view text, bool terminal) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    if (!terminal || !control) std::fputc(c, stdout);
  }
  std::fflush(stdout);
}

Chat::Chat(ServedModel& model, ChatOptions options, Interrupt& interrupt)
    : model_(model),
      options_(std::move(options)),
      interrupt_(interrupt),
      reader_(options_.history_path, interrupt) {}

int Chat::run() {
  fmt::print("{}: /help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.\n", model_.id);
  for (std::string text; read_message(text);) {
    if (blank(text)) continue;
    if (text.front() == '/') {
      if (!SlashCommands::run(*this, text)) break;
    } else {
      answer(text);
    }
  }
  return 0;
}

bool Chat::read_message(std::string& text) {
  using Outcome = LineReader::Outcome;
  std::string line;
  const Outcome outcome = reader_.read(kPrompt, line);
  text.clear();
  if (outcome == Outcome::kEnd) {
    fmt::print("\n");
    return false;
  }
  if (outcome == Outcome::kInterrupted) return true;
  if (!line.starts_with(kBlock)) {
    if (!blank(line)) reader_.remember(line);
    text = line;
    return true;
  }
  // A block: up to a line that ends in """ (which may be the first one).
  line.erase(0, kBlock.size());
  while (!line.ends_with(kBlock)) {
    text += line + "\n";
    const Outcome next = reader_.read(kMorePrompt, line);
    if (next == Outcome::kInterrupted) text.clear();
    if (next != Outcome::kLine) return true;
  }
  line.resize(line.size() - kBlock.size());
  text += line;
  if (!text.empty() && text.front() == '\n') text.erase(0, 1);
  if (!text.empty() && text.front() == '/') text.insert(0, 1, ' ');  // never a command
  return true;
}

void Chat::answer(const std::string& text) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  messages_.push_back({{"role", "user"}, {"content", text}});
  interrupt_.clear();
  Result<Answer> answer = [&]() -> Result<Answer> {
    WOK_TRY(tokens, prompt_tokens(model_, with_system(options_.system, messages_)));
    return generate(
        model_, std::move(tokens), options_.parameters,
        [&](std::string_view piece) { print_text(piece, terminal); }, interrupt_.flag());
  }();
  if (!answer.ok()) {
    messages_.erase(messages_.size() - 1);  // the question can be asked again
    fmt::print(stderr, "error: {}\n", answer.error().message);
    interrupt_.clear();
    return;
  }
  print_text("\n", terminal);
  if (answer->finish == FinishReason::kAbort) fmt::print(stderr, "(stopped)\n");
  if (answer->finish == FinishReason::kLength) {
    fmt::print(stderr,
               "(cut after {} tokens; more: /set max_tokens N, as far as the context goes)\n",
               answer->generated_tokens);
  }
  if (options_.verbose) fmt::print(stderr, "{}\n", timing_line(*answer));
  messages_.push_back({{"role", "assistant"}, {"content", answer->text}});
  interrupt_.clear();
}

}  // namespace wok::app
