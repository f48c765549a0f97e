// Takes the pool's memory from the system before the step thread writes to it. The first write to
// fresh memory waits until the system has cleared it, two megabytes at a time, and on a virtual
// machine until the host has found some: every stream would stutter. A thread of its own stays a
// little ahead of the pages in use, so that memory still follows use.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "kv/page_memory.h"

namespace wok {

class PageFaultAhead {
 public:
  // `memory` must outlive it.
  explicit PageFaultAhead(const PageMemory& memory);
  ~PageFaultAhead();
  PageFaultAhead(const PageFaultAhead&) = delete;
  PageFaultAhead& operator=(const PageFaultAhead&) = delete;

  // Pages [0, pages) are or have been in use. Never waits.
  void follow(int32_t pages) {
    if (pages + pages_ahead_ / 2 <= goal_.load(std::memory_order_relaxed)) return;
    goal_.store(pages + pages_ahead_, std::memory_order_release);
    goal_.notify_one();
  }
  int32_t ready_pages() const { return ready_.load(std::memory_order_acquire); }

 private:
  void work();

  const PageMemory& memory_;
  int32_t pages_ahead_;
  std::atomic<int32_t> goal_{0};   // pages to have; kStop: no more
  std::atomic<int32_t> ready_{0};  // pages there are
  std::thread thread_;
};

}  // namespace wok
