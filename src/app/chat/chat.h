// The interactive chat of `wok run`.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "api/served_model.h"
#include "app/chat/line_reader.h"
#include "app/chat/parameters.h"
#include "app/interrupt.h"

namespace wok::app {

struct ChatOptions {
  ChatParameters parameters;
  std::string system;  // "" = none
  bool verbose = false;
  std::string history_path;  // "" keeps none
};

class Chat {
 public:
  Chat(ServedModel& model, ChatOptions options, Interrupt& interrupt);

  // Until /bye or Ctrl-D; the exit code.
  int run();

 private:
  friend struct SlashCommands;

  bool read_message(std::string& text);  // false: the user leaves
  void answer(const std::string& text);

  ServedModel& model_;
  ChatOptions options_;
  Interrupt& interrupt_;
  LineReader reader_;
  nlohmann::json messages_ = nlohmann::json::array();  // without the system message
};

// The messages a template sees: the system message, when there is one, then the conversation.
nlohmann::json with_system(const std::string& system, const nlohmann::json& messages);

// Prints text of a model to stdout; on a terminal without control characters that would steer it.
void print_text(std::string_view text, bool terminal);

}  // namespace wok::app
