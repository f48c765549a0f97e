// The compute pool: runs `tasks` calls of a function on a fixed set of threads, the caller among
// them. Each thread has a share of neighbouring tasks, so that what it fetches ahead of one task is
// the next one's, and its caches see the same weights in every step. A thread whose share is done
// takes tasks from the end of the largest share left: with another process on one core, work flows
// to the others. Threads that wait spin briefly and then sleep. run() allocates nothing.
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

  int32_t threads() const { return static_cast<int32_t>(shares_.size()); }

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

  // Which run it is, the task after the last and the first that nobody has claimed. The run is in
  // the word, so that a worker which slept through one can never claim a task of the next.
  struct alignas(64) Share {
    std::atomic<uint64_t> word{0};
  };

  void run_erased(int32_t tasks, Call call, const void* context);
  void work(int32_t worker);
  void claim_tasks(uint32_t generation, int32_t worker);
  int32_t claim_own(uint32_t generation, int32_t worker);
  int32_t claim_others(uint32_t generation);

  std::vector<Share> shares_;
  alignas(64) std::atomic<int32_t> finished_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  // Of the run: read only by a thread that has claimed one of its tasks and not yet said so.
  int32_t tasks_ = 0;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace wok
