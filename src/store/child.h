// A child process with its output caught, for pip. Never goes through a shell.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace wok::store {

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is an absolute path
  std::vector<std::pair<std::string, std::string>> extra_environment;
  int poll_interval_ms = 100;
  int timeout_ms = 0;                            // 0: none
  std::function<void()> on_poll;                 // called about every poll_interval_ms
  const std::atomic<bool>* cancelled = nullptr;  // true ends the child and its children
};

struct ChildResult {
  int exit_code = -1;                   // 128 + signal when a signal ended it
  std::vector<std::string> last_lines;  // of stdout and stderr together, at most 12
};

// Runs it to its end; stdin is empty. The child is a process group of its own (a Ctrl-C on the
// terminal reaches only wok, which then ends it in order) and dies with this thread, so that a
// killed wok leaves no download behind.
// Errors: kIo when it cannot be started or runs out of time; kCancelled.
Result<ChildResult> run_child(const ChildOptions& options);

// The first executable file of that name in the folders of `path` (":"-separated); "" for none.
std::string find_program(const std::string& name, const std::string& path);

}  // namespace wok::store
