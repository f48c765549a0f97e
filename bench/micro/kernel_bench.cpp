// Each kernel against this machine's roof, on one thread: a matrix of every family for a few rows
// (read from memory, against a plain read of as many bytes) and for many (against the int8 peak),
// and attention (against the fp32 peak). The roof is measured again beside every row.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/roof.h"
#include "kernels/activations.h"
#include "kernels/isa.h"
#include "kernels/pack.h"

namespace wok {
namespace {

constexpr int32_t kMatrixRows = 1024, kMatrixCols = 2048;
// So much passes before any weight is read again. Where a cache holds all of it, the plain read it
// is compared with comes from there as well.
constexpr size_t kColdBytes = size_t{256} << 20;

constexpr const char* kFamilyNames[kFamilyCount] = {
    "Int4",         "Int4Zero",    "Int4Super",   "Int5",      "Int5Zero",  "Int5Super",
    "Int6Super",    "Int8",        "Int2Zero",    "Int2Super", "Int3Super", "Table4",
    "Table4Halves", "Table4Super", "Table3Super", "Float16",   "BFloat16",  "Float32"};
constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What one thread can do now: the best of a few tries, for another machine on the host can take
// away from any of them.
bench::Roof roof_now() {
  static auto meter = bench::RoofMeter::create(kColdBytes);
  static ComputePool pool(1);
  if (!meter.ok()) {
    std::fprintf(stderr, "error: %s\n", meter.error().message.c_str());
    std::exit(1);
  }
  return meter->measure(pool, {.repetitions = 4, .caches = false, .all_peaks = false});
}

// Runs the benchmark's iterations; returns their seconds on the wall clock.
template <class Fn>
double timed(benchmark::State& state, const Fn& fn) {
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    fn();
    benchmark::ClobberMemory();
  }
  return seconds_since(start);
}

// Copies of one matrix, one after the other in memory.
struct Weights {
  std::vector<uint8_t> bytes;
  Matrix matrix;
  size_t copy_bytes = 0;
  int copies = 1;

  const Matrix& copy(int64_t i) {
    matrix.data = bytes.data() + copy_bytes * static_cast<size_t>(i % copies);
    return matrix;
  }
};

Weights make_weights(const KernelTable& kernels, Family family, bool cold) {
  Weights w;
  w.matrix = {.rows = kMatrixRows, .cols = kMatrixCols, .family = family, .codebook = kCodebook};
  w.matrix.panel_bytes = packed_panel_bytes(family, kernels.panel_rows, kMatrixCols);
  w.copy_bytes = w.matrix.panel_bytes * panel_count(kernels, kMatrixRows);
  w.copies = cold ? static_cast<int>(kColdBytes / w.copy_bytes) + 1 : 1;
  w.bytes.resize(w.copy_bytes * w.copies);
  // 0x33 everywhere is a sane half (0.22), bfloat16 and float: no denormals, no infinities.
  std::fill(w.bytes.begin(), w.bytes.end(), uint8_t{0x33});
  return w;
}

void matmul(benchmark::State& state, const KernelTable& kernels, Family family, int32_t rows,
            bool exact) {
  const bool cold = rows <= 8;
  Weights w = make_weights(kernels, family, cold);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  ActivationBuffer x;
  x.reserve(rows, kMatrixCols);
  x.shape(kernels, rows, kMatrixCols, exact ? rows : 0);
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < kMatrixCols; ++c) x.row(r)[c] = normal(random);
    x.quantize_row(kernels, r);
  }
  std::vector<float> y(static_cast<size_t>(rows) * kMatrixRows);
  std::vector<uint8_t> scratch(matmul_scratch_bytes(kMatrixCols) + 64);
  auto* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  const bench::Roof roof = roof_now();
  int64_t i = 0;
  const double seconds = timed(state, [&] {
    kernels.matmul({.weights = &w.copy(i++),
                    .x = &x.view(),
                    .row_end = rows,
                    .panel_end = panel_count(kernels, kMatrixRows),
                    .y = y.data(),
                    .y_stride = kMatrixRows,
                    .scratch = aligned});
  });
  const double calls_per_s = static_cast<double>(state.iterations()) / seconds;
  const double gop_per_s = 2e-9 * kMatrixRows * kMatrixCols * rows * calls_per_s;
  const double gb_per_s = 1e-9 * static_cast<double>(w.copy_bytes) * calls_per_s;
  state.counters["Gop/s"] = gop_per_s;
  state.counters["of_peak"] =
      gop_per_s / roof.peak_gop_per_s(is_integer(family) ? "int8" : "fp32", 1);
  if (!cold) return;
  state.counters["GB/s"] = gb_per_s;
  state.counters["of_read"] = gb_per_s / roof.read_gb_per_s("DRAM", 1);
}

void attention(benchmark::State& state, const KernelTable& kernels, int32_t dim, int32_t rows,
               int32_t positions) {
  const int32_t pages = positions / kPageTokens;
  std::vector<int32_t> table(pages);
  for (int32_t p = 0; p < pages; ++p) table[p] = p;
  const size_t half = size_t{2} * dim * kPageTokens;
  std::vector<uint8_t> pool(2 * half * pages);
  const KvView kv{pool.data(), 2 * half, 0, half};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> key(dim), q(static_cast<size_t>(rows) * dim), out(q.size());
  for (float& v : q) v = normal(random);
  for (int32_t t = 0; t < positions; ++t) {
    for (float& v : key) v = normal(random);
    kernels.kv_f16.store(kv, table.data(), t, dim, key.data(), key.data());
  }
  AttendArgs args{
      .kv = kv, .page_table = table.data(), .head_dim = dim, .rows = rows, .scale = 0.1f};
  for (int32_t r = 0; r < rows; ++r) {
    args.q[r] = &q[static_cast<size_t>(r) * dim];
    args.out[r] = &out[static_cast<size_t>(r) * dim];
    args.end[r] = positions;
  }
  const bench::Roof roof = roof_now();
  const double seconds = timed(state, [&] { kernels.kv_f16.attend(args); });
  const double gop_per_s =
      4e-9 * dim * rows * positions * static_cast<double>(state.iterations()) / seconds;
  state.counters["Gop/s"] = gop_per_s;
  state.counters["of_peak"] = gop_per_s / roof.peak_gop_per_s("fp32", 1);
}

void register_all(const KernelTable& kernels) {
  for (int f = 0; f < kFamilyCount; ++f) {
    const auto family = static_cast<Family>(f);
    for (const int32_t rows : {1, 4, 8, 16, 32, 512}) {
      for (const bool exact : {true, false}) {
        if (!exact && (!is_integer(family) || kernels.quantize_group == nullptr || rows < 16))
          continue;
        const std::string name = std::string("matmul/") + kFamilyNames[f] + (exact ? "" : "/fast") +
                                 "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&kernels, family, rows, exact](benchmark::State& state) {
                                       matmul(state, kernels, family, rows, exact);
                                     });
      }
    }
  }
  for (const int32_t dim : {64, 128, 256}) {
    for (const int32_t rows : {1, 4, kMaxAttendRows}) {
      const std::string name =
          "attention/head:" + std::to_string(dim) + "/rows:" + std::to_string(rows);
      benchmark::RegisterBenchmark(name.c_str(), [&kernels, dim, rows](benchmark::State& state) {
        attention(state, kernels, dim, rows, 2048);
      });
    }
  }
}

}  // namespace
}  // namespace wok

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const char* forced = std::getenv("WOK_ISA");
  auto isa = wok::choose_isa(forced == nullptr ? "" : forced);
  if (!isa.ok()) {
    std::fprintf(stderr, "error: %s\n", isa.error().message.c_str());
    return 1;
  }
  if (isa->kernels->panel_rows == 0) {
    std::fprintf(stderr, "error: the %s kernels have no packed matrices to measure\n",
                 isa->name.c_str());
    return 1;
  }
  benchmark::AddCustomContext("cpu", isa->cpu);
  benchmark::AddCustomContext("kernels", isa->name);
  wok::register_all(*isa->kernels);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
