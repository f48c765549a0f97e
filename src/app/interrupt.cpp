#include "app/interrupt.h"

namespace wok::app {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may touch it");

void on_signal(int signal_number) {
  if (!interrupted.exchange(true)) return;
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: a blocked read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

const std::atomic<bool>& Interrupt::flag() const {
  return interrupted;
}
void Interrupt::clear() {
  interrupted = false;
}

}  // namespace wok::app
