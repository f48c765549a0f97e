#include "store/retry.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace wok::store {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(50);

}  // namespace

void Retry::wait(int64_t ms) const {
  if (options_.sleep) return options_.sleep(ms);
  const auto until = Clock::now() + std::chrono::milliseconds(ms);
  while (Clock::now() < until && !stopped_()) {
    std::this_thread::sleep_for(std::min<Clock::duration>(kLook, until - Clock::now()));
  }
}

Status Retry::again(const Error& why, int64_t retry_after_s) {
  if (why.kind != ErrorKind::kBusy) return why;
  if (++failures_ >= options_.attempts) {
    return io_error(
        fmt::format("{} ({} tries). What came so far is kept: the same command goes on "
                    "from there.",
                    why.message, failures_));
  }
  if (retry_after_s > options_.max_retry_after_s) {
    return io_error(
        fmt::format("{} and asks to wait {} s. Try again then; what came so far is kept.",
                    why.message, retry_after_s));
  }
  const int64_t growing = options_.first_wait_ms << std::min(failures_ - 1, 20);
  wait(std::max(std::min(growing, options_.max_wait_ms), retry_after_s * 1000));
  if (stopped_()) return Error{ErrorKind::kCancelled, "cancelled"};
  return Ok{};
}

}  // namespace wok::store
