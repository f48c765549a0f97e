// A pull's progress for people: one redrawn line on a terminal, a few plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "store/pull.h"

namespace wok::app {

class PullDisplay {
 public:
  // terminal: stderr is one.
  PullDisplay(std::string name, bool terminal) : name_(std::move(name)), terminal_(terminal) {}
  ~PullDisplay();

  void show(const store::PullProgress& progress);
  // A line that stays.
  void note(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const store::PullProgress& progress);
  void print_line(const store::PullProgress& progress);

  std::string name_;
  bool terminal_;
  bool drawn_ = false;
  bool any_ = false;
  store::PullProgress::Stage stage_ = store::PullProgress::Stage::kWaiting;
  Clock::time_point stage_began_;
  uint64_t began_bytes_ = 0;  // were there before, and say nothing of the speed
  Clock::time_point last_shown_;
  int last_tenth_ = 0;
};

}  // namespace wok::app
