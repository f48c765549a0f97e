// Lines from a terminal with editing and a history file (libedit).
#pragma once

#include <memory>
#include <string>

#include "app/interrupt.h"

namespace wok::app {

class LineReader {
 public:
  enum class Outcome { kLine, kInterrupted, kEnd };  // Enter, Ctrl-C, Ctrl-D on an empty line

  // history_path: "" keeps none; its folder is made when it is missing.
  LineReader(std::string history_path, Interrupt& interrupt);
  ~LineReader();  // writes the history
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  Outcome read(const std::string& prompt, std::string& line);
  // What a later arrow-up brings back.
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wok::app
