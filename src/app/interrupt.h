// Ctrl-C as a flag, for as long as an Interrupt lives: what runs meanwhile looks at it and stops in
// order. A second Ctrl-C while the flag is set ends the process.
#pragma once

#include <atomic>
#include <csignal>

namespace wok::app {

class Interrupt {
 public:
  Interrupt();   // takes SIGINT and SIGTERM; at most one object at a time
  ~Interrupt();  // gives them back
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;
  bool pending() const { return flag().load(); }
  void clear();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace wok::app
