// Which kernel table this CPU runs, and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernels.h"

namespace wok {

struct IsaOption {
  std::string name;  // reference, avx2, avxvnni, avx512, amx
  bool available = false;
  std::string reason;  // what the CPU has or lacks
};

struct IsaChoice {
  std::string name;
  std::string reason;
  const KernelTable* kernels = nullptr;
  std::vector<IsaOption> options;  // slowest first
  std::string cpu;                 // model name
};

// forced: "" for the best one, else one of the names. The chosen table has passed self_check();
// one that fails it is left out with a warning, and the next narrower is taken.
// Errors: kInvalid for an unknown name; kUnsupported for one this CPU or build lacks.
Result<IsaChoice> choose_isa(std::string_view forced);

// Every table this CPU can run, also those that choose_isa() does not choose: for tests.
std::vector<const KernelTable*> runnable_tables();

// The CPU's own name, as /proc/cpuinfo has it.
std::string cpu_model();

// Compares a table with the reference on small seeded inputs, in a few milliseconds.
// Returns "" or what disagreed.
std::string self_check(const KernelTable& table);

}  // namespace wok
