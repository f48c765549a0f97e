// Scheduling of threads that do little and should do it at once, beside threads that compute.
#pragma once

namespace wok {

// Asks Linux to run the calling thread soon after it wakes, for short times. A thread that hands
// out tokens otherwise waits for a tick (up to 4 ms) while all CPUs compute. Takes no larger share
// of a CPU, and needs no privilege; where the kernel has no such thing (before 6.12) nothing
// changes. Threads that it starts inherit it. sched(7), sched_setattr(2): sched_runtime of
// SCHED_OTHER is the slice.
void ask_for_short_slices();

}  // namespace wok
