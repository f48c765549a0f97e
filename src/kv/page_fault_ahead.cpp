#include "kv/page_fault_ahead.h"

#include <algorithm>

namespace wok {
namespace {

constexpr size_t kBytesAhead = 16 << 20;
constexpr int32_t kStop = -1;

}  // namespace

PageFaultAhead::PageFaultAhead(const PageMemory& memory)
    : memory_(memory),
      pages_ahead_(
          static_cast<int32_t>(kBytesAhead / std::max<size_t>(memory.shape().page_bytes(), 1)) + 2),
      thread_([this] { work(); }) {}

PageFaultAhead::~PageFaultAhead() {
  goal_.store(kStop);
  goal_.notify_one();
  thread_.join();
}

void PageFaultAhead::work() {
  for (int32_t ready = 0;;) {
    const int32_t goal = goal_.load(std::memory_order_acquire);
    if (goal == kStop) return;
    const int32_t end = std::min(goal, memory_.pages());
    if (ready < end) {
      memory_.populate(ready, end - ready);
      ready = end;
      ready_.store(ready, std::memory_order_release);
    }
    goal_.wait(goal, std::memory_order_acquire);
  }
}

}  // namespace wok
