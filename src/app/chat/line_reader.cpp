#include "app/chat/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace wok::app {
namespace {

constexpr int kHistoryLines = 1000;

// libedit splits what is typed into characters by the locale; "C" would break every é.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineReader::State {
  EditLine* edit = nullptr;
  History* history = nullptr;
  std::string history_path;
  std::string prompt;
  Interrupt* interrupt = nullptr;

  static char* show_prompt(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<State*>(self)->prompt.data();
  }
};

LineReader::LineReader(std::string history_path, Interrupt& interrupt)
    : state_(std::make_unique<State>()) {
  use_utf8();
  State& s = *state_;
  s.history_path = std::move(history_path);
  s.interrupt = &interrupt;
  s.edit = el_init("wok", stdin, stdout, stderr);
  s.history = history_init();
  HistEvent event;
  history(s.history, &event, H_SETSIZE, kHistoryLines);
  history(s.history, &event, H_SETUNIQUE, 1);
  if (!s.history_path.empty()) history(s.history, &event, H_LOAD, s.history_path.c_str());
  el_set(s.edit, EL_CLIENTDATA, &s);
  el_set(s.edit, EL_PROMPT, &State::show_prompt);
  el_set(s.edit, EL_EDITOR, "emacs");
  el_set(s.edit, EL_HIST, history, s.history);
  el_set(s.edit, EL_SIGNAL, 0);  // signals are ours: an interrupted read comes back
  el_set(s.edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(s.edit, nullptr);  // the user's own ~/.editrc
}

LineReader::~LineReader() {
  State& s = *state_;
  if (!s.history_path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(s.history_path).parent_path(),
                                        ignored);
    HistEvent event;
    history(s.history, &event, H_SAVE, s.history_path.c_str());
    ::chmod(s.history_path.c_str(), 0600);  // prompts are private
  }
  el_end(s.edit);
  history_end(s.history);
}

LineReader::Outcome LineReader::read(const std::string& prompt, std::string& line) {
  State& s = *state_;
  s.prompt = prompt;
  int count = 0;
  const char* text = el_gets(s.edit, &count);
  if (s.interrupt->pending()) {
    s.interrupt->clear();
    el_reset(s.edit);
    std::fputs("\n", stdout);
    return Outcome::kInterrupted;
  }
  if (text == nullptr || count <= 0) return Outcome::kEnd;
  line.assign(text, static_cast<size_t>(count));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return Outcome::kLine;
}

void LineReader::remember(const std::string& line) {
  HistEvent event;
  history(state_->history, &event, H_ENTER, line.c_str());
}

}  // namespace wok::app
