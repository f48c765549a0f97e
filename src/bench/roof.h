// What this machine can do at most: bytes read a second from each level of memory, and multiplies a
// second of each kind. Every benchmark states its fraction of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"

namespace wok::bench {

struct Bandwidth {
  std::string level;  // DRAM, LLC, L2
  size_t bytes = 0;   // read over and over; of all threads together
  int32_t threads = 0;
  double gb_per_s = 0;  // the best of the repetitions, 1 GB = 1e9 bytes
};

struct Peak {
  std::string name;  // int8, bf16, fp32
  std::string instruction;
  int32_t threads = 0;
  double gop_per_s = 0;
};

struct Roof {
  std::string cpu;
  std::vector<Bandwidth> reads;
  std::vector<Peak> peaks;

  // The widest instruction's where there are several; 0 when it was not measured.
  double read_gb_per_s(const std::string& level, int32_t threads) const;
  double peak_gop_per_s(const std::string& name, int32_t threads) const;
};

struct RoofOptions {
  int32_t repetitions = 5;
  bool caches = true;     // LLC and L2 as well as DRAM
  bool all_peaks = true;  // false: only the widest instruction of each kind
};

class RoofMeter {
 public:
  // Reserves and touches the memory to read, at least 1 MiB. Errors: kNoMemory.
  static Result<RoofMeter> create(size_t dram_bytes);
  RoofMeter(RoofMeter&& other) noexcept;
  RoofMeter& operator=(RoofMeter&&) = delete;
  ~RoofMeter();

  // What the pool's threads reach together.
  Roof measure(ComputePool& pool, const RoofOptions& options) const;

 private:
  RoofMeter(char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  double read_rate(ComputePool& pool, size_t bytes, int32_t repetitions) const;

  char* data_;
  size_t bytes_;
};

// {"cpu": …, "reads": [{level, bytes, threads, gb_per_s}], "peaks": [{name, …}]}, indented.
std::string roof_json(const Roof& roof);
std::string roof_table(const Roof& roof);

}  // namespace wok::bench
