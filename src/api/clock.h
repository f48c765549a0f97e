// Time and randomness come into the api room as parameters, so that tests and the simulator can
// drive them. Every function may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>

namespace wok {

struct Clock {
  std::function<int64_t()> unix_ms;
  std::function<int64_t()> steady_ns;
  std::function<uint64_t()> random;

  static Clock system();
};

}  // namespace wok
