#include "quantizer/float_product.h"

#include <algorithm>
#include <cstring>

#include "quant/pack_matrix.h"

namespace wok {
namespace {

constexpr int32_t kRowsPerTask = 64;
constexpr int32_t kPanelsAtOnce = 4 * kPanelsPerTask;
constexpr size_t kAlignment = 64;

uint8_t* aligned(std::vector<uint8_t>& bytes) {
  return bytes.data() +
         (kAlignment - reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment) % kAlignment;
}

}  // namespace

void FloatProduct::set(const float* b, int32_t n, int32_t k) {
  rows_ = b;
  n_ = n;
  k_ = k;
  const size_t bytes = packed_matrix_bytes(kWeightFormat_f32, kernels_, n, k);
  if (bytes == 0) return;  // the table reads rows
  packed_.resize(bytes + kAlignment);
  uint8_t* packed = aligned(packed_);
  std::memset(packed, 0, bytes);
  const int32_t width = kernels_.panel_rows;
  pool_.run(panel_count(kernels_, n), [&](int32_t panel, int32_t) {
    const float* first = b + int64_t{panel} * width * k;
    pack_panels(kWeightFormat_f32, kernels_, n, k, reinterpret_cast<const uint8_t*>(first), panel,
                panel + 1, packed);
  });
}

void FloatProduct::add(const float* a, int32_t m, float* y, bool upper) {
  const Matrix matrix =
      make_matrix(kWeightFormat_f32, kernels_, n_, k_, reinterpret_cast<const uint8_t*>(rows_),
                  packed_.empty() ? nullptr : aligned(packed_));
  const Activations x{.f32 = a, .rows = m, .cols = k_, .exact_rows = m};
  const int32_t panels = panel_count(kernels_, n_);
  const int32_t width = (n_ + panels - 1) / panels;
  const int32_t row_tasks = (m + kRowsPerTask - 1) / kRowsPerTask;
  const int32_t panel_tasks = (panels + kPanelsAtOnce - 1) / kPanelsAtOnce;
  const size_t each = (matmul_scratch_bytes(k_) + kAlignment - 1) / kAlignment * kAlignment;
  scratch_.resize(each * pool_.threads() + kAlignment);
  uint8_t* scratch = aligned(scratch_);
  pool_.run(row_tasks * panel_tasks, [&](int32_t task, int32_t worker) {
    const int32_t row = task / panel_tasks * kRowsPerTask;
    const int32_t panel = task % panel_tasks * kPanelsAtOnce;
    const int32_t panel_end = std::min(panel + kPanelsAtOnce, panels);
    if (upper && panel_end * width <= row) return;
    kernels_.matmul({.weights = &matrix,
                     .x = &x,
                     .row_begin = row,
                     .row_end = std::min(row + kRowsPerTask, m),
                     .panel_begin = panel,
                     .panel_end = panel_end,
                     .y = y,
                     .y_stride = n_,
                     .accumulate = true,
                     .scratch = scratch + worker * each});
  });
}

}  // namespace wok
