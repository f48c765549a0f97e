#include "base/short_slices.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace wok {
namespace {

constexpr uint64_t kSliceNs = 100'000;  // the shortest that Linux takes

// As the kernel's sched_attr; the C library has no declaration of it before 2.41.
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

}  // namespace

void ask_for_short_slices() {
  SchedulingAttributes attributes{};
  // Policy and niceness stay what they are.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != 0) return;
  attributes.size = sizeof(attributes);
  attributes.runtime = kSliceNs;
  attributes.deadline = attributes.period = 0;
  attributes.flags = 0;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace wok
