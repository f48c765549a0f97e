#include "bench/roof.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "bench/peak_loops.h"
#include "kernels/isa.h"

namespace wok::bench {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t cache_bytes(int level) {
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0; index < 8; ++index) {
    int found = 0;
    std::ifstream(cache + std::to_string(index) + "/level") >> found;
    if (found != level) continue;
    size_t size = 0;
    char unit = 0;
    std::ifstream(cache + std::to_string(index) + "/size") >> size >> unit;
    return size * (unit == 'M' ? 1u << 20 : unit == 'K' ? 1u << 10 : 1);
  }
  return 0;
}

double peak_rate(ComputePool& pool, const PeakLoop& loop, int32_t repetitions) {
  constexpr double kSeconds = 0.02;
  int64_t iterations = 1000;
  double best = 0;
  for (int32_t r = 0; r <= repetitions; ++r) {
    const double begin = now_s();
    pool.run(pool.threads(), [&](int32_t, int32_t) { loop.run(iterations); });
    const double seconds = now_s() - begin;
    const double ops = loop.ops_per_iteration * static_cast<double>(iterations) * pool.threads();
    best = std::max(best, ops / seconds / 1e9);
    if (r == 0) {
      iterations = static_cast<int64_t>(static_cast<double>(iterations) * kSeconds / seconds) + 1;
      best = 0;
    }
  }
  return best;
}

}  // namespace

double Roof::read_gb_per_s(const std::string& level, int32_t threads) const {
  for (const Bandwidth& r : reads) {
    if (r.level == level && r.threads == threads) return r.gb_per_s;
  }
  return 0;
}

double Roof::peak_gop_per_s(const std::string& name, int32_t threads) const {
  for (const Peak& p : peaks) {
    if (p.name == name && p.threads == threads) return p.gop_per_s;
  }
  return 0;
}

Result<RoofMeter> RoofMeter::create(size_t bytes) {
  bytes = std::max(bytes, size_t{1} << 20);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorKind::kNoMemory,
                 fmt::format("cannot reserve {} MiB to measure memory with", bytes >> 20)};
  }
  ::madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 1, bytes);  // untouched pages would all be the one page of zeros
  return RoofMeter(static_cast<char*>(data), bytes);
}

RoofMeter::RoofMeter(RoofMeter&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

RoofMeter::~RoofMeter() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

double RoofMeter::read_rate(ComputePool& pool, size_t bytes, int32_t repetitions) const {
  const auto threads = static_cast<size_t>(pool.threads());
  const size_t share = bytes / threads / 256 * 256;
  const size_t rounds = std::max<size_t>(1, (size_t{64} << 20) / bytes);
  // Big shares are claimed piece by piece, as a step claims its tiles; small ones are read over and
  // over by the thread whose cache holds them.
  const size_t piece = rounds > 1 ? share : std::min(share, size_t{1} << 20);
  const size_t pieces = share / piece * threads;
  double best = 0;
  for (int32_t r = 0; r <= repetitions; ++r) {
    const double begin = now_s();
    pool.run(static_cast<int32_t>(pieces), [&](int32_t i, int32_t) {
      for (size_t n = 0; n < rounds; ++n) {
        const volatile uint64_t sink = read_all(data_ + static_cast<size_t>(i) * piece, piece);
        static_cast<void>(sink);
      }
    });
    const double rate = static_cast<double>(piece * pieces * rounds) / (now_s() - begin) / 1e9;
    if (r > 0) best = std::max(best, rate);  // the first round warms up
  }
  return best;
}

Roof RoofMeter::measure(ComputePool& pool, const RoofOptions& options) const {
  Roof roof;
  roof.cpu = cpu_model();
  const auto read = [&](const char* level, size_t bytes) {
    bytes = std::min(bytes, bytes_);
    roof.reads.push_back(
        {level, bytes, pool.threads(), read_rate(pool, bytes, options.repetitions)});
  };
  read("DRAM", bytes_);
  if (options.caches) {
    // A virtual machine reports its host's whole last level; a share of it is what it gets.
    if (const size_t llc = cache_bytes(3)) read("LLC", std::min(llc / 2, size_t{16} << 20));
    if (const size_t l2 = cache_bytes(2)) {
      read("L2", l2 / 2 * static_cast<size_t>(pool.threads()));
    }
  }
  std::string measured;
  for (const PeakLoop& loop : peak_loops()) {
    if (!options.all_peaks && measured == loop.name) continue;
    measured = loop.name;
    roof.peaks.push_back(
        {loop.name, loop.instruction, pool.threads(), peak_rate(pool, loop, options.repetitions)});
  }
  return roof;
}

}  // namespace wok::bench
