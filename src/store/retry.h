// When a request that failed is tried again, and after what wait.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"

namespace wok::store {

struct RetryOptions {
  int attempts = 6;  // in a row, without a byte of progress between them
  int64_t first_wait_ms = 1000;
  int64_t max_wait_ms = 30'000;
  int64_t max_retry_after_s = 300;        // a server that wants longer is not waited for
  std::function<void(int64_t ms)> sleep;  // for tests; null = wait, and look whether to stop
};

// Counts one request's failures.
class Retry {
 public:
  Retry(const RetryOptions& options, std::function<bool()> stopped)
      : options_(options), stopped_(std::move(stopped)) {}

  // Ok: waited, try again. Otherwise the error to give up with: `why` itself unless it is kBusy.
  Status again(const Error& why, int64_t retry_after_s);
  void progressed() { failures_ = 0; }

 private:
  void wait(int64_t ms) const;
  const RetryOptions& options_;
  std::function<bool()> stopped_;
  int failures_ = 0;
};

}  // namespace wok::store
