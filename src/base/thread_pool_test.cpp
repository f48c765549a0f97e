#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace wok {
namespace {

TEST(ComputePool, RunsEveryTaskOnceWhateverTheNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    ComputePool pool(threads);
    for (int round = 0; round < 2000; ++round) {
      const int tasks = round % 37;
      std::vector<std::atomic<int>> calls(40);
      pool.run(tasks, [&](int32_t task, int32_t worker) {
        ASSERT_LT(worker, threads);
        calls[task].fetch_add(1);
      });
      for (int i = 0; i < 40; ++i) ASSERT_EQ(calls[i].load(), i < tasks ? 1 : 0) << i;
    }
  }
}

TEST(ComputePool, WorksAfterItsThreadsFellAsleep) {
  ComputePool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> sum{0};
    pool.run(100, [&](int32_t task, int32_t) { sum += task; });
    EXPECT_EQ(sum.load(), 4950);
  }
}

// Whoever takes the first task holds it until all the others are done, those of its own share too.
TEST(ComputePool, AThreadThatIsHeldUpDelaysOnlyTheTaskItHolds) {
  for (int threads : {2, 3}) {
    ComputePool pool(threads);
    constexpr int kTasks = 100;
    std::atomic<int> done{0};
    bool others_went_on = false;
    pool.run(kTasks, [&](int32_t task, int32_t) {
      if (task == 0) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (done.load() < kTasks - 1 && std::chrono::steady_clock::now() < limit) {
          std::this_thread::yield();
        }
        others_went_on = done.load() == kTasks - 1;
      }
      done.fetch_add(1);
    });
    EXPECT_TRUE(others_went_on) << threads;
    EXPECT_EQ(done.load(), kTasks);
  }
}

TEST(ComputePool, CountsAtLeastOneCpu) {
  EXPECT_GE(usable_cpus(), 1);
}

}  // namespace
}  // namespace wok
