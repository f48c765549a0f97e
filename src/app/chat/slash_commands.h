// What a line that begins with '/' does in the chat. A new one is one entry of the table.
#pragma once

#include <string>

#include "app/chat/chat.h"

namespace wok::app {

struct SlashCommands {
  // Runs the line's command; false when the chat ends.
  static bool run(Chat& chat, const std::string& line);

 private:
  struct Entry;
  static const Entry kTable[];
  static void help();
  static void set(Chat& chat, const std::string& arguments);
  static void show(Chat& chat);
  static void system(Chat& chat, const std::string& text);
  static void clear(Chat& chat);
};

}  // namespace wok::app
