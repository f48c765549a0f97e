// The plain truth: each kernel written the obvious way, sums in double, weights dequantized from
// the file's own blocks, activations in float. Slow on purpose; it shares no code with the bodies.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

void matmul(const MatmulArgs& args) {
  const Matrix& w = *args.weights;
  auto* row = reinterpret_cast<float*>(args.scratch);
  for (int32_t r = args.panel_begin; r < args.panel_end; ++r) {
    w.dequantize(w.data + static_cast<size_t>(r) * w.panel_bytes, row, w.cols);
    for (int32_t m = args.row_begin; m < args.row_end; ++m) {
      const float* x = args.x->f32 + static_cast<int64_t>(m) * w.cols;
      double sum = 0;
      for (int32_t c = 0; c < w.cols; ++c) {
        sum += static_cast<double>(x[w.column_order == nullptr ? c : w.column_order[c]]) * row[c];
      }
      float& y = args.y[(m - args.y_row) * args.y_stride + (r - args.y_panel)];
      y = static_cast<float>(args.accumulate ? y + sum : sum);
    }
  }
}

void rmsnorm(const float* x, const float* weight, float eps, int32_t n, float* y) {
  double squares = 0;
  for (int32_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double inverse = 1.0 / std::sqrt(squares / n + eps);
  for (int32_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * inverse * weight[i]);
}

void layernorm(const float* x, const float* weight, const float* bias, float eps, int32_t n,
               float* y) {
  double sum = 0, squares = 0;
  for (int32_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / n;
  for (int32_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double inverse = 1.0 / std::sqrt(squares / n + eps);
  for (int32_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>((x[i] - mean) * inverse * weight[i] + bias[i]);
  }
}

void gelu_bias(const float* x, const float* bias, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]) + bias[i];
    y[i] = static_cast<float>(0.5 * v * std::erfc(-v / std::sqrt(2.0)));
  }
}

void quantize(const float* x, int32_t n, int32_t e, int8_t* q, ActivationBlock* blocks) {
  for (int32_t b = 0; b < n / 32; ++b, q += 32 * e, blocks += e) {
    float absmax = 0;
    for (int i = 0; i < 32; ++i) absmax = std::max(absmax, std::fabs(x[32 * b + i]));
    const float scale = absmax / 127.0f;
    const float inverse = absmax > 0 ? 127.0f / absmax : 0.0f;
    int total[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      const int code = static_cast<int>(std::nearbyint(x[32 * b + i] * inverse));
      q[i] = static_cast<int8_t>(code);
      total[i / 16] += code;
    }
    const int all = total[0] + total[1];
    *blocks = {scale, scale * static_cast<float>(all), -8 * all, {-32 * total[0], -32 * total[1]}};
  }
}

void rotate(float* a, float* b, float c, float s) {
  const double x = *a, y = *b;
  *a = static_cast<float>(x * c - y * s);
  *b = static_cast<float>(x * s + y * c);
}

void rope_interleaved(float* x, const float* cos, const float* sin, int32_t n) {
  for (int32_t i = 0; i < n / 2; ++i) rotate(x + 2 * i, x + 2 * i + 1, cos[i], sin[i]);
}

void rope_halves(float* x, const float* cos, const float* sin, int32_t n) {
  for (int32_t i = 0; i < n / 2; ++i) rotate(x + i, x + i + n / 2, cos[i], sin[i]);
}

void silu_mul(const float* gate, const float* up, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i]))) * up[i]);
  }
}

void gelu_mul(const float* gate, const float* up, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    const double g = gate[i];
    const double t = std::tanh(std::sqrt(2.0 / M_PI) * (g + 0.044715 * g * g * g));
    y[i] = static_cast<float>(0.5 * g * (1.0 + t) * up[i]);
  }
}

void add(const float* x, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] += x[i];
}

void clamped_glu(const float* gate, const float* up, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    const float g = std::min(gate[i], kGluLimit);
    const float u = std::clamp(up[i], -kGluLimit, kGluLimit);
    y[i] = g / (1 + std::exp(-kGluSlope * g)) * (u + 1);
  }
}

void soft_cap(float* x, float cap, int32_t n) {
  for (int32_t i = 0; i < n; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

int32_t argmax(const float* x, int32_t n) {
  int32_t best = 0;
  for (int32_t i = 1; i < n; ++i) {
    if (x[i] > x[best] || std::isnan(x[best])) best = i;
  }
  return std::isnan(x[best]) ? 0 : best;
}

float max(const float* x, int32_t n) {
  float best = -std::numeric_limits<float>::infinity();
  for (int32_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

double exp_sum(const float* x, float shift, float inv_temperature, int32_t n, float* y) {
  double total = 0;
  for (int32_t i = 0; i < n; ++i) {
    y[i] = std::exp((x[i] - shift) * inv_temperature);
    total += y[i];
  }
  return total;
}

struct HalfElement {
  static float load(const uint8_t* p) { return half_to_float(load_unaligned<uint16_t>(p)); }
  static uint16_t narrow(float v) { return float_to_half(v); }
};
struct Bf16Element {
  static float load(const uint8_t* p) { return bf16_to_float(load_unaligned<uint16_t>(p)); }
  static uint16_t narrow(float v) { return float_to_bf16(v); }
};

uint8_t* page_of(const KvView& kv, const int32_t* page_table, int32_t position) {
  return kv.pool + static_cast<size_t>(page_table[position / kPageTokens]) * kv.page_bytes;
}

template <class Element>
void store(const KvView& kv, const int32_t* page_table, int32_t position, int32_t head_dim,
           const float* key, const float* value) {
  uint8_t* page = page_of(kv, page_table, position);
  const int32_t slot = position % kPageTokens;
  for (int32_t d = 0; d < head_dim; ++d) {
    const uint16_t k = Element::narrow(key[d]), v = Element::narrow(value[d]);
    std::memcpy(page + kv.key_offset + (static_cast<size_t>(d) * kPageTokens + slot) * 2, &k, 2);
    std::memcpy(page + kv.value_offset + (static_cast<size_t>(slot) * head_dim + d) * 2, &v, 2);
  }
}

// Row's positions [begin, end): weighted values [head_dim], the greatest score, the sum of weights.
template <class Element>
void attend_range(const AttendArgs& args, int row, int32_t begin, int32_t end, double* sums,
                  double* highest, double* total) {
  const int32_t dim = args.head_dim;
  auto score = [&](int32_t position) {
    const uint8_t* keys = page_of(args.kv, args.page_table, position) + args.kv.key_offset;
    double dot = 0;
    for (int32_t d = 0; d < dim; ++d) {
      dot +=
          static_cast<double>(args.q[row][d]) *
          Element::load(keys + (static_cast<size_t>(d) * kPageTokens + position % kPageTokens) * 2);
    }
    dot *= args.scale;
    return args.cap > 0 ? args.cap * std::tanh(dot / args.cap) : dot;
  };
  *highest = -std::numeric_limits<double>::infinity();
  *total = 0;
  std::fill_n(sums, dim, 0.0);
  for (int32_t t = begin; t < end; ++t) *highest = std::max(*highest, score(t));
  for (int32_t t = begin; t < end; ++t) {
    const double weight = std::exp(score(t) - *highest);
    const uint8_t* values = page_of(args.kv, args.page_table, t) + args.kv.value_offset +
                            static_cast<size_t>(t % kPageTokens) * dim * 2;
    for (int32_t d = 0; d < dim; ++d) sums[d] += weight * Element::load(values + d * 2);
    *total += weight;
  }
}

template <class Element>
void attend(const AttendArgs& args) {
  double sums[kMaxHeadDim], highest = 0, total = 0;
  for (int row = 0; row < args.rows; ++row) {
    attend_range<Element>(args, row, args.begin[row], args.end[row], sums, &highest, &total);
    if (args.sinks != nullptr) total += std::exp(args.sinks[row] - highest);
    for (int32_t d = 0; d < args.head_dim; ++d) {
      args.out[row][d] = total > 0 ? static_cast<float>(sums[d] / total) : 0.0f;
    }
  }
}

template <class Element>
void attend_split(const AttendArgs& args, int32_t split) {
  double sums[kMaxHeadDim], highest = 0, total = 0;
  for (int row = 0; row < args.rows; ++row) {
    attend_range<Element>(args, row, std::max(args.begin[row], split * kAttendSplit),
                          std::min(args.end[row], (split + 1) * kAttendSplit), sums, &highest,
                          &total);
    for (int32_t d = 0; d < args.head_dim; ++d) args.out[row][d] = static_cast<float>(sums[d]);
    args.out[row][args.head_dim] = static_cast<float>(highest);
    args.out[row][args.head_dim + 1] = static_cast<float>(total);
  }
}

void combine_splits(const float* parts, int64_t stride, int32_t splits, int32_t head_dim,
                    const float* sink, float* out) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int32_t s = 0; s < splits; ++s) {
    if (parts[s * stride + head_dim + 1] > 0) {
      highest = std::max<double>(highest, parts[s * stride + head_dim]);
    }
  }
  double sums[kMaxHeadDim] = {};
  double total = 0;
  for (int32_t s = 0; s < splits; ++s) {
    const float* part = parts + s * stride;
    if (!(part[head_dim + 1] > 0)) continue;
    const double factor = std::exp(part[head_dim] - highest);
    for (int32_t d = 0; d < head_dim; ++d) sums[d] += factor * part[d];
    total += factor * part[head_dim + 1];
  }
  if (sink != nullptr) total += std::exp(*sink - highest);
  for (int32_t d = 0; d < head_dim; ++d) {
    out[d] = total > 0 ? static_cast<float>(sums[d] / total) : 0.0f;
  }
}

}  // namespace

const KernelTable& reference_kernels() {
  static constexpr KernelTable kTable = {
      .name = "reference",
      .panel_rows = 0,
      .stream_rows = 4,
      .matmul = matmul,
      .rmsnorm = rmsnorm,
      .layernorm = layernorm,
      .gelu_bias = gelu_bias,
      .quantize = quantize,
      .quantize_group = nullptr,
      .rope_interleaved = rope_interleaved,
      .rope_halves = rope_halves,
      .silu_mul = silu_mul,
      .gelu_mul = gelu_mul,
      .clamped_glu = clamped_glu,
      .add = add,
      .soft_cap = soft_cap,
      .argmax = argmax,
      .max = max,
      .exp_sum = exp_sum,
      .combine_splits = combine_splits,
      .kv_f16 = {.store = store<HalfElement>,
                 .attend = attend<HalfElement>,
                 .attend_split = attend_split<HalfElement>},
      .kv_bf16 = {.store = store<Bf16Element>,
                  .attend = attend<Bf16Element>,
                  .attend_split = attend_split<Bf16Element>},
  };
  return kTable;
}

}  // namespace wok
