// What endpoints share: the served model, metrics, the text pool, the clock. Owned by the app (or a
// test) and outlives the server and the model. Every function may be called from any thread.
//
// Order of ending: server, then stop(), then the model, then the context.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "api/clock.h"
#include "api/metrics.h"
#include "api/served_model.h"
#include "api/text_pool.h"

namespace wok {

struct ApiOptions {
  std::string version = "0.0.0";
  int text_threads = 2;
  int max_choices = 128;      // prompts × n of one request
  int64_t stall_ms = 30'000;  // /health: work to do, but no step for that long
};

class ApiContext {
 public:
  explicit ApiContext(ApiOptions options = {}, Clock clock = Clock::system());

  // The model to serve; until then endpoints that need one answer 503. Set once.
  void set_model(ServedModel* model);
  ServedModel* model() const { return model_.load(std::memory_order_acquire); }
  // Bytes of the vocabulary's longest token: a text of n bytes has at least n / that many tokens.
  size_t longest_piece() const { return longest_piece_.load(std::memory_order_relaxed); }

  // From now on new generations get 503; running ones go on.
  void drain();
  bool draining() const { return draining_.load(std::memory_order_acquire); }

  // Ends the text pool. No endpoint may be dispatched afterwards.
  void stop() { text_pool_.stop(); }

  const ApiOptions& options() const { return options_; }
  const Clock& clock() const { return clock_; }
  Metrics& metrics() { return metrics_; }
  TextPool& text_pool() { return text_pool_; }

 private:
  const ApiOptions options_;
  const Clock clock_;
  Metrics metrics_;
  std::atomic<ServedModel*> model_{nullptr};
  std::atomic<size_t> longest_piece_{1};
  std::atomic<bool> draining_{false};
  TextPool text_pool_;  // last: its threads end before what they use
};

}  // namespace wok
