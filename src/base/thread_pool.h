// The compute pool: runs `tasks` calls of a function on a fixed set of threads, the caller among
// them. Tasks are claimed one at a time, so a thread that the system took off its core delays only
// the task it holds: with another process on one core, work flows to the others. Threads that wait
// spin briefly and then sleep. run() allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace wok {

// CPUs this process may use: affinity mask and cgroup quota, physical cores first.
int32_t usable_cpus();

class ComputePool {
 public:
  // threads >= 1, the calling thread included.
  explicit ComputePool(int32_t threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int32_t threads() const { return static_cast<int32_t>(workers_.size()) + 1; }

  // Calls fn(task, worker) for every task in [0, tasks), worker in [0, threads()), and returns when
  // all are done. Only one thread may call run() at a time; fn must not call it.
  template <class Fn>
  void run(int32_t tasks, const Fn& fn) {
    run_erased(
        tasks,
        [](const void* context, int32_t task, int32_t worker) {
          (*static_cast<const Fn*>(context))(task, worker);
        },
        &fn);
  }

 private:
  using Call = void (*)(const void* context, int32_t task, int32_t worker);

  void run_erased(int32_t tasks, Call call, const void* context);
  void work(int32_t worker);
  void claim_tasks(uint32_t generation, int32_t worker);

  std::vector<std::thread> workers_;
  // One word says which run it is, how many tasks it has and how many are claimed, so that a worker
  // which slept through a run can never claim a task of the next one with the old one's bounds.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int32_t> finished_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  Call call_ = nullptr;
  const void* context_ = nullptr;
};

}  // namespace wok
