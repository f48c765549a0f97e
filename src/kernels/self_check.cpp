// The start-up check of a kernel table: every family and kernel once, on small seeded inputs.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/half.h"
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

constexpr int32_t kRows = 37, kCols = 96;  // more than two panels, the last one ragged

// A packed matrix and the same weights in float.
struct Sample {
  std::vector<uint8_t> packed;
  std::vector<float> weights = std::vector<float>(kRows * kCols);
  Matrix matrix;
};

Sample sample_matrix(Family family, int32_t width, Noise& noise) {
  Sample s;
  s.matrix = {.rows = kRows, .cols = kCols, .family = family};
  s.matrix.panel_bytes = packed_panel_bytes(family, width, kCols);
  s.packed.assign(s.matrix.panel_bytes * ((kRows + width - 1) / width), 0);
  s.matrix.data = s.packed.data();
  const int levels = family == Family::kInt4 ? 16 : family == Family::kInt5 ? 32 : 64;
  for (int32_t r = 0; r < kRows; ++r) {
    uint8_t* panel = s.packed.data() + r / width * s.matrix.panel_bytes;
    float* row = s.weights.data() + r * kCols;
    if (family >= Family::kFloat16) {
      std::vector<uint16_t> narrow(kCols);
      for (int32_t c = 0; c < kCols; ++c) {
        row[c] = noise.value();
        if (family == Family::kFloat16) row[c] = half_to_float(narrow[c] = float_to_half(row[c]));
        if (family == Family::kBFloat16) row[c] = bf16_to_float(narrow[c] = float_to_bf16(row[c]));
      }
      const void* bytes = family == Family::kFloat32 ? static_cast<const void*>(row)
                                                     : static_cast<const void*>(narrow.data());
      pack_float_row(family, width, static_cast<const uint8_t*>(bytes), kCols, r % width, panel);
      continue;
    }
    for (int32_t b = 0; b < kCols / kBlockColumns; ++b) {
      PackBlock block{};
      for (float& f : block.scale) f = half_to_float(float_to_half(0.01f + 0.01f * noise.value()));
      block.min = half_to_float(float_to_half(0.1f * noise.value()));
      for (int c = 0; c < kBlockColumns; ++c) {
        const uint32_t bits = noise.bits();
        float& weight = row[b * kBlockColumns + c];
        if (family == Family::kInt8) {
          const auto code = static_cast<int8_t>(bits);
          block.code[c] = static_cast<uint8_t>(code);
          weight = block.scale[0] * code;
          continue;
        }
        block.code[c] = static_cast<uint8_t>(bits % levels);
        weight = family == Family::kInt6 ? block.scale[c / 16] * (block.code[c] - 32)
                                         : block.scale[0] * block.code[c] + block.min;
      }
      pack_block(family, width, block, b, r % width, panel);
    }
  }
  return s;
}

std::string check_matmul(const KernelTable& table, Family family, int32_t rows, Noise& noise) {
  const Sample s = sample_matrix(family, table.panel_rows, noise);
  const std::vector<float> x = noise_row(noise, rows * kCols);
  std::vector<int8_t> q(rows * kCols);
  std::vector<float> scale(rows * kCols / 32), half_sum(rows * kCols / 16), sum(scale.size());
  std::vector<float> seen = x;  // what an exact kernel works on: the int8 form, or x itself
  for (int32_t m = 0; m < rows; ++m) {
    table.quantize(&x[m * kCols], kCols, &q[m * kCols], &scale[m * kCols / 32],
                   &half_sum[m * kCols / 16], &sum[m * kCols / 32]);
  }
  if (family < Family::kFloat16) {
    for (int32_t i = 0; i < rows * kCols; ++i) {
      seen[i] = scale[i / 32] * q[i];
      if (std::fabs(seen[i] - x[i]) > 0.51f * scale[i / 32]) {
        return fmt::format("quantize: {} became {}", x[i], seen[i]);
      }
    }
  }
  std::vector<float> got(rows * kRows, 1.0f), want(rows * kRows, 1.0f);
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t r = 0; r < kRows; ++r) {
      double dot = 0;
      for (int32_t c = 0; c < kCols; ++c) {
        dot += static_cast<double>(seen[m * kCols + c]) * s.weights[r * kCols + c];
      }
      want[m * kRows + r] += static_cast<float>(dot);
    }
  }
  const Activations activations{.f32 = x.data(),
                                .q = q.data(),
                                .scale = scale.data(),
                                .half_sum = half_sum.data(),
                                .sum = sum.data(),
                                .rows = rows,
                                .cols = kCols};
  std::vector<uint8_t> scratch(matmul_scratch_bytes(kCols));
  table.matmul({.weights = &s.matrix,
                .x = &activations,
                .panel_begin = 0,
                .panel_end = panel_count(table, kRows),
                .y = got.data(),
                .y_stride = kRows,
                .accumulate = true,
                .scratch = scratch.data()});
  const std::string what = fmt::format("matmul family {} rows {}", static_cast<int>(family), rows);
  return compare(what.c_str(), got.data(), want.data(), rows * kRows, 1e-4f);
}

std::string check_attend(const KvKernels& kernels, const KvKernels& reference, const char* what,
                         Noise& noise) {
  constexpr int32_t kDim = 32, kTokens = 150, kPages = 10, kQueries = 7;
  const int32_t table[kPages] = {3, 1, 4, 0, 5, 9, 2, 6, 8, 7};
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
  AttendArgs args{.kv = kv, .page_table = table, .head_dim = kDim, .rows = kQueries, .scale = 1.5f};
  for (int r = 0; r < kQueries; ++r) {
    args.q[r] = &q[r * kDim];
    args.end[r] = kTokens - 13 * r;
    args.begin[r] = r % 2 == 0 ? 0 : args.end[r] - 20;
    args.out[r] = &want[r * kDim];
  }
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
      for (const int32_t rows : {1, 3, 18}) {
        if (fault.empty()) fault = check_matmul(table, static_cast<Family>(family), rows, noise);
      }
    }
  }
  const KernelTable& plain = reference_kernels();
  if (fault.empty()) fault = check_attend(table.kv_f16, plain.kv_f16, "attend f16", noise);
  if (fault.empty()) fault = check_attend(table.kv_bf16, plain.kv_bf16, "attend bf16", noise);
  return fault;
}

}  // namespace wok
