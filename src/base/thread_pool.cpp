#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wok {
namespace {

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// About 30-60 microseconds: longer than the gaps between the kernels of a step, shorter than what
// a neighbour on the same core would notice.
constexpr int kSpins = 1500;

constexpr int kTaskBits = 20;
constexpr uint64_t kTaskMask = (uint64_t{1} << kTaskBits) - 1;
constexpr int32_t kNone = -1;

// A share's word, taken apart.
struct Tasks {
  uint32_t generation;  // 24 bits
  int32_t end, next;

  explicit Tasks(uint64_t word)
      : generation(static_cast<uint32_t>(word >> (2 * kTaskBits))),
        end(static_cast<int32_t>((word >> kTaskBits) & kTaskMask)),
        next(static_cast<int32_t>(word & kTaskMask)) {}
  Tasks(uint32_t run, int32_t first, int32_t last)
      : generation(run & 0xffffff), end(last), next(first) {}

  uint64_t word() const {
    return static_cast<uint64_t>(generation) << (2 * kTaskBits) |
           static_cast<uint64_t>(end) << kTaskBits | static_cast<uint64_t>(next);
  }
  int32_t left(uint32_t run) const { return generation == (run & 0xffffff) ? end - next : 0; }
};

// cgroup v2's "max 100000" or "200000 100000": quota and period in microseconds.
double cgroup_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1e9;
  return std::strtod(quota.c_str(), nullptr) / period;
}

}  // namespace

int32_t usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int32_t allowed = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    // Of the hardware threads of one core only the first counts: two share one set of multipliers.
    int32_t cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                         "/topology/thread_siblings_list");
      int first = cpu;
      file >> first;
      if (!file || first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, &set)) {
        ++cores;
      }
    }
    allowed = std::max(1, cores);
  }
  const double quota = cgroup_cpus();
  return std::max(1, static_cast<int32_t>(std::min<double>(allowed, std::floor(quota + 0.5))));
}

ComputePool::ComputePool(int32_t threads) : shares_(std::max(threads, 0)) {
  WOK_CHECK(threads >= 1, "a pool has at least the calling thread");
  for (int32_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ComputePool::~ComputePool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// The first task left of the worker's own share, or kNone.
int32_t ComputePool::claim_own(uint32_t generation, int32_t worker) {
  std::atomic<uint64_t>& share = shares_[worker].word;
  uint64_t word = share.load(std::memory_order_acquire);
  for (;;) {
    const Tasks tasks(word);
    if (tasks.left(generation) <= 0) return kNone;
    const uint64_t rest = Tasks(generation, tasks.next + 1, tasks.end).word();
    if (share.compare_exchange_weak(word, rest, std::memory_order_acq_rel)) return tasks.next;
  }
}

// The last task of the largest share left, or kNone.
int32_t ComputePool::claim_others(uint32_t generation) {
  for (;;) {
    std::atomic<uint64_t>* share = nullptr;
    uint64_t word = 0;
    int32_t most = 0;
    for (Share& candidate : shares_) {
      const uint64_t seen = candidate.word.load(std::memory_order_acquire);
      if (const int32_t left = Tasks(seen).left(generation); left > most) {
        most = left;
        share = &candidate.word;
        word = seen;
      }
    }
    if (share == nullptr) return kNone;
    const Tasks tasks(word);
    const uint64_t rest = Tasks(generation, tasks.next, tasks.end - 1).word();
    if (share->compare_exchange_strong(word, rest, std::memory_order_acq_rel)) return tasks.end - 1;
  }
}

void ComputePool::claim_tasks(uint32_t generation, int32_t worker) {
  int32_t done = 0;
  for (;;) {
    int32_t task = claim_own(generation, worker);
    if (task == kNone) task = claim_others(generation);
    if (task == kNone) break;
    call_(context_, task, worker);
    ++done;
  }
  if (done == 0) return;
  const int32_t tasks = tasks_;
  if (finished_.fetch_add(done, std::memory_order_acq_rel) + done == tasks) finished_.notify_one();
}

void ComputePool::run_erased(int32_t tasks, Call call, const void* context) {
  if (tasks <= 0) return;
  if (workers_.empty() || tasks == 1) {
    for (int32_t i = 0; i < tasks; ++i) call(context, i, 0);
    return;
  }
  WOK_CHECK(tasks < static_cast<int32_t>(kTaskMask), "tasks of one run fit a share's word");
  call_ = call;
  context_ = context;
  tasks_ = tasks;
  finished_.store(0, std::memory_order_relaxed);
  const uint32_t generation = wake_.load(std::memory_order_relaxed) + 1;
  const int64_t all = tasks, of = threads();
  for (int64_t i = 0; i < of; ++i) {
    const Tasks share(generation, static_cast<int32_t>(all * i / of),
                      static_cast<int32_t>(all * (i + 1) / of));
    shares_[i].word.store(share.word(), std::memory_order_release);
  }
  wake_.store(generation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
  claim_tasks(generation, 0);
  for (int spin = 0; finished_.load(std::memory_order_acquire) != tasks; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
      continue;
    }
    const int32_t seen = finished_.load(std::memory_order_acquire);
    if (seen != tasks) finished_.wait(seen, std::memory_order_acquire);
  }
}

void ComputePool::work(int32_t worker) {
  uint32_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t now = wake_.load(std::memory_order_acquire);
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      pause_cpu();
      now = wake_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(seen, std::memory_order_seq_cst);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    seen = now;
    claim_tasks(seen, worker);
  }
}

}  // namespace wok
