// Register-only and read-only loops that show what a core can do at most: the roofs that kernels
// are measured against (Williams, Waterman & Patterson 2009, the roofline model).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wok::bench {

struct PeakLoop {
  const char* name;          // int8, bf16, fp32
  const char* instruction;   // "vpdpbusd zmm"
  double ops_per_iteration;  // a multiply and its add count as two
  void (*run)(int64_t iterations);
};

// The loops this CPU can execute, the widest of each kind first.
std::vector<PeakLoop> peak_loops();

// Reads every byte in the widest loads this CPU has; the result only keeps the loads alive.
uint64_t read_all(const void* data, size_t bytes);

}  // namespace wok::bench
