#include "api/clock.h"

#include <chrono>
#include <random>

namespace wok {

Clock Clock::system() {
  using std::chrono::duration_cast;
  Clock clock;
  clock.unix_ms = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return int64_t{duration_cast<std::chrono::milliseconds>(now).count()};
  };
  clock.steady_ns = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return int64_t{duration_cast<std::chrono::nanoseconds>(now).count()};
  };
  clock.random = [] {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  };
  return clock;
}

}  // namespace wok
