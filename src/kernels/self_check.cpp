// The start-up check of a kernel table: every family and kernel once, on small seeded inputs.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/half.h"
#include "kernels/activations.h"
#include "kernels/isa.h"
#include "kernels/pack.h"

namespace wok {
namespace {

// A small generator: the check must not depend on anything but its own arithmetic.
class Noise {
 public:
  explicit Noise(uint32_t seed) : state_(seed) {}
  uint32_t bits() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  float value() { return static_cast<float>(bits()) * 0x1p-23f - 1.0f; }  // [-1, 1)

 private:
  uint32_t state_;
};

std::vector<float> noise_row(Noise& noise, int32_t n) {
  std::vector<float> row(n);
  for (float& v : row) v = noise.value();
  return row;
}

std::string compare(const char* what, const float* got, const float* want, int32_t n,
                    float tolerance) {
  for (int32_t i = 0; i < n; ++i) {
    if (!(std::fabs(got[i] - want[i]) <= tolerance * (1.0f + std::fabs(want[i])))) {
      return fmt::format("{}: element {} is {}, the reference says {}", what, i, got[i], want[i]);
    }
  }
  return "";
}

constexpr int32_t kRows = 37;  // more than two panels, the last one ragged

// Whole runs for the Super families; for the others an odd number of blocks and a short last group.
int32_t sample_cols(Family family) {
  return is_integer(family) && run_blocks(family) == 8 ? 768 : 608;
}

// A packed matrix and the same weights in float.
struct Sample {
  std::vector<uint8_t> packed;
  std::vector<float> weights;
  Matrix matrix;
};

PackBlock sample_block(Family family, Noise& noise) {
  const auto half = [](float v) { return half_to_float(float_to_half(v)); };
  PackBlock block{};
  block.scale = half(0.01f + 0.01f * noise.value());
  block.min = half(0.1f * noise.value());
  if (family == Family::kInt4Group || family == Family::kInt4Point) {
    block.min = static_cast<float>(noise.bits() % 17);
  }
  for (uint8_t& code : block.scale_code) code = static_cast<uint8_t>(noise.bits() % 64);
  block.min_code = static_cast<uint8_t>(noise.bits() % 64);
  if (family == Family::kInt2Super) {  // 4 bits
    for (uint8_t& code : block.scale_code) code %= 16;
    for (uint8_t& code : block.half_min_code) code = static_cast<uint8_t>(noise.bits() % 16);
  }
  block.second_scale = half(0.01f + 0.01f * noise.value());
  if (is_table(family)) block.scale = half(block.scale / 16);
  if (run_blocks(family) == 8) block.scale = half(block.scale / 32);
  for (uint8_t& code : block.code) code = static_cast<uint8_t>(noise.bits() % code_levels(family));
  return block;
}

Sample sample_matrix(Family family, int32_t width, Noise& noise) {
  Sample s;
  const int32_t cols = sample_cols(family);
  s.weights.resize(static_cast<size_t>(kRows) * cols);
  // 16 values in no order: kernels look them up as they are.
  static constexpr int8_t kCodebook[16] = {-127, 45, 3,   -1, 88, -64, 17, 127,
                                           -9,   0,  -33, 64, 5,  -90, 30, -12};
  s.matrix = {.rows = kRows, .cols = cols, .family = family, .codebook = kCodebook};
  s.matrix.panel_bytes = packed_panel_bytes(family, width, cols);
  s.packed.assign(s.matrix.panel_bytes * ((kRows + width - 1) / width), 0);
  s.matrix.data = s.packed.data();
  for (int32_t r = 0; r < kRows; ++r) {
    uint8_t* panel = s.packed.data() + r / width * s.matrix.panel_bytes;
    float* row = s.weights.data() + r * cols;
    if (!is_integer(family)) {
      std::vector<uint16_t> narrow(cols);
      for (int32_t c = 0; c < cols; ++c) {
        row[c] = noise.value();
        if (family == Family::kFloat16) row[c] = half_to_float(narrow[c] = float_to_half(row[c]));
        if (family == Family::kBFloat16) row[c] = bf16_to_float(narrow[c] = float_to_bf16(row[c]));
      }
      const void* bytes = family == Family::kFloat32 ? static_cast<const void*>(row)
                                                     : static_cast<const void*>(narrow.data());
      pack_float_row(family, width, static_cast<const uint8_t*>(bytes), cols, r % width, panel);
      continue;
    }
    PackBlock run;
    for (int32_t b = 0; b < cols / kBlockColumns; ++b) {
      PackBlock block = sample_block(family, noise);
      if (run_blocks(family) >= 4) {  // d and dmin, or scale and zero, are the whole run's
        if (b % run_blocks(family) == 0) run = block;
        block.scale = run.scale;
        block.min = run.min;
      }
      for (int c = 0; c < kBlockColumns; ++c) {
        row[b * kBlockColumns + c] = unpacked_weight(family, s.matrix.codebook, block, c);
      }
      pack_block(family, width, block, b, r % width, panel);
    }
  }
  return s;
}

// The value of an activation as the kernel sees it: its code times its scale, or itself.
float seen_value(const Activations& a, Family family, int32_t m, int32_t c) {
  if (!is_integer(family)) return a.f32[m * a.cols + c];
  if (m < a.exact_rows) {
    const int64_t at = static_cast<int64_t>(c / 32) * a.exact_rows + m;
    return a.blocks[at].scale * a.q[at * 32 + c % 32];
  }
  const auto code = static_cast<uint8_t>(a.q[m * a.cols + c]);
  return a.scale[m * (a.cols / 32) + c / kGroupColumns] * static_cast<float>(code - 128);
}

// The first `exact` of `rows` rows in the exact form, the others in the prompts'.
std::string check_matmul(const KernelTable& table, Family family, int32_t rows, int32_t exact,
                         Noise& noise) {
  const Sample s = sample_matrix(family, table.panel_rows, noise);
  const int32_t cols = s.matrix.cols;
  ActivationBuffer x;
  x.reserve(rows, cols);
  x.shape(table, rows, cols, exact);
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t c = 0; c < cols; ++c) x.row(m)[c] = noise.value();
    x.quantize_row(table, m);
  }
  const Activations& a = x.view();
  std::vector<float> got(rows * kRows, 1.0f);
  std::vector<uint8_t> scratch(matmul_scratch_bytes(cols) + 64);
  uint8_t* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  table.matmul({.weights = &s.matrix,
                .x = &a,
                .row_begin = 0,
                .row_end = rows,
                .panel_begin = 0,
                .panel_end = panel_count(table, kRows),
                .y = got.data(),
                .y_stride = kRows,
                .accumulate = true,
                .scratch = aligned});
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t r = 0; r < kRows; ++r) {
      const float* w = s.weights.data() + r * cols;
      double want = 1, squares = 0;
      float largest = 0;
      for (int32_t c = 0; c < cols; ++c) {
        const float v = seen_value(a, family, m, c);
        if (std::fabs(v - a.f32[m * cols + c]) > 0.0041f) {
          return fmt::format("quantize: {} became {}", a.f32[m * cols + c], v);
        }
        want += static_cast<double>(v) * w[c];
        squares += static_cast<double>(v) * v;
        largest = std::max(largest, std::fabs(w[c]));
      }
      double tolerance = 1e-4 * (1 + std::fabs(want));
      // Weights rounded to 1/127 of their group's largest: independent errors of a third of that.
      if (is_integer(family) && m >= a.exact_rows) tolerance = largest / 64 * std::sqrt(squares);
      const float y = got[m * kRows + r];
      if (!(std::fabs(y - want) <= tolerance)) {
        return fmt::format("matmul family {}, row {} of {} ({} exact), output {}: {}, not {}",
                           static_cast<int>(family), m, rows, a.exact_rows, r, y, want);
      }
    }
  }
  return "";
}

std::string check_attend(const KvKernels& kernels, const KvKernels& reference, const char* what,
                         float cap, bool sinks, Noise& noise) {
  constexpr int32_t kDim = 48, kTokens = 300, kPages = 19, kQueries = 16;
  int32_t table[kPages];
  for (int32_t p = 0; p < kPages; ++p) table[p] = p * 7 % kPages;
  KvView kv{.page_bytes = 2u * 2 * kDim * kPageTokens,
            .key_offset = 0,
            .value_offset = 2u * kDim * kPageTokens};
  std::vector<uint8_t> pool(kv.page_bytes * kPages), plain(pool.size());
  for (int32_t t = 0; t < kTokens; ++t) {
    const std::vector<float> key = noise_row(noise, kDim), value = noise_row(noise, kDim);
    kv.pool = pool.data();
    kernels.store(kv, table, t, kDim, key.data(), value.data());
    kv.pool = plain.data();
    reference.store(kv, table, t, kDim, key.data(), value.data());
  }
  if (pool != plain) return fmt::format("{}: stored bytes differ", what);
  const std::vector<float> q = noise_row(noise, kQueries * kDim);
  std::vector<float> got(kQueries * kDim), want(kQueries * kDim);
  AttendArgs args{
      .kv = kv, .page_table = table, .head_dim = kDim, .rows = kQueries, .scale = 1.5f, .cap = cap};
  for (int r = 0; r < kQueries; ++r) {
    args.q[r] = &q[r * kDim];
    args.end[r] = kTokens - 13 * r;
    args.begin[r] = r % 2 == 0 ? 0 : args.end[r] - 20;
    args.out[r] = &want[r * kDim];
  }
  const std::vector<float> sink = noise_row(noise, kQueries);
  if (sinks) args.sinks = sink.data();
  reference.attend(args);
  for (int r = 0; r < kQueries; ++r) args.out[r] = &got[r * kDim];
  kernels.attend(args);
  return compare(what, got.data(), want.data(), kQueries * kDim, 2e-5f);
}

std::string check_rows(const KernelTable& table, Noise& noise) {
  const KernelTable& plain = reference_kernels();
  constexpr int32_t n = 93;  // no multiple of any vector width
  const std::vector<float> a = noise_row(noise, n), b = noise_row(noise, n);
  std::vector<float> got(n), want(n);
  std::string fault;
  auto check = [&](const char* what, float tolerance) {
    if (fault.empty()) fault = compare(what, got.data(), want.data(), n, tolerance);
  };
  table.rmsnorm(a.data(), b.data(), 1e-5f, n, got.data());
  plain.rmsnorm(a.data(), b.data(), 1e-5f, n, want.data());
  check("rmsnorm", 1e-5f);
  table.layernorm(a.data(), b.data(), a.data(), 1e-5f, n, got.data());
  plain.layernorm(a.data(), b.data(), a.data(), 1e-5f, n, want.data());
  check("layernorm", 1e-5f);
  table.gelu_bias(a.data(), b.data(), n, got.data());
  plain.gelu_bias(a.data(), b.data(), n, want.data());
  check("gelu_bias", 1e-5f);
  table.silu_mul(a.data(), b.data(), n, got.data());
  plain.silu_mul(a.data(), b.data(), n, want.data());
  check("silu_mul", 1e-5f);
  table.gelu_mul(a.data(), b.data(), n, got.data());
  plain.gelu_mul(a.data(), b.data(), n, want.data());
  check("gelu_mul", 1e-5f);
  got = want = b;
  table.add(a.data(), n, got.data());
  plain.add(a.data(), n, want.data());
  check("add", 1e-6f);
  std::vector<float> wide = a, wider = b;  // beyond the limits, too
  for (float& v : wide) v *= 10;
  for (float& v : wider) v *= 10;
  table.clamped_glu(wide.data(), wider.data(), n, got.data());
  plain.clamped_glu(wide.data(), wider.data(), n, want.data());
  check("clamped_glu", 1e-5f);
  got = want = a;
  table.soft_cap(got.data(), 0.7f, n);
  plain.soft_cap(want.data(), 0.7f, n);
  check("soft_cap", 1e-6f);
  for (auto rope : {&KernelTable::rope_interleaved, &KernelTable::rope_halves}) {
    got = want = b;
    (table.*rope)(got.data(), a.data(), a.data() + 40, 80);
    (plain.*rope)(want.data(), a.data(), a.data() + 40, 80);
    check("rope", 1e-5f);
  }
  const double sum = table.exp_sum(a.data(), 0.5f, 2.0f, n, got.data());
  const double plain_sum = plain.exp_sum(a.data(), 0.5f, 2.0f, n, want.data());
  check("exp_sum", 1e-5f);
  if (fault.empty() && std::fabs(sum - plain_sum) > 1e-4 * plain_sum) fault = "exp_sum: total";
  if (fault.empty() && table.argmax(a.data(), n) != plain.argmax(a.data(), n)) fault = "argmax";
  if (fault.empty() && table.max(a.data(), n) != plain.max(a.data(), n)) fault = "max";
  return fault;
}

}  // namespace

std::string self_check(const KernelTable& table) {
  Noise noise(42);
  std::string fault = check_rows(table, noise);
  if (table.panel_rows != 0) {
    for (int family = 0; family < kFamilyCount; ++family) {
      constexpr int32_t kShapes[][2] = {{1, 1}, {3, 3}, {10, 10}, {9, 0}, {8, 2}};
      for (const auto& [rows, exact] : kShapes) {
        if (fault.empty()) {
          fault = check_matmul(table, static_cast<Family>(family), rows, exact, noise);
        }
      }
    }
  }
  const KernelTable& plain = reference_kernels();
  for (const auto& [cap, sinks] : {std::pair{0.0f, false}, {2.0f, false}, {0.0f, true}}) {
    if (fault.empty()) {
      fault = check_attend(table.kv_f16, plain.kv_f16, "attend f16", cap, sinks, noise);
    }
    if (fault.empty()) {
      fault = check_attend(table.kv_bf16, plain.kv_bf16, "attend bf16", cap, sinks, noise);
    }
  }
  return fault;
}

}  // namespace wok
