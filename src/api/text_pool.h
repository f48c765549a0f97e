// A few threads for templates, tokenization and big JSON bodies, so that neither the I/O threads
// nor the engine's threads ever wait for text. First come, first served.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace wok {

class TextPool {
 public:
  explicit TextPool(int threads);
  ~TextPool();  // stop()
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // A task must not throw. After stop() tasks are dropped, unrun.
  void post(std::function<void()> task);

  // Runs what is queued, then ends the threads. Not from a task.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace wok
