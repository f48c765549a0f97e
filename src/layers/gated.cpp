#include "layers/gated.h"

#include <algorithm>
#include <array>

#include "layers/linear.h"

namespace wok {
namespace {

constexpr int32_t kRowsAtOnce = 256;  // gate and up of a block: 256 KiB, in L2
constexpr int32_t kLeastRows = 16;    // with fewer, all of gate and up stays in a cache anyway
constexpr int64_t kPairColumns = 2 * kGroupColumns;

size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

bool can_fuse(const KernelTable& kernels, const Activations& x, const GatedLinear& op) {
  return !op.keep_rows && kernels.panel_rows != 0 && x.rows >= kLeastRows &&
         is_integer(op.down->family) && op.down->column_order == nullptr &&
         op.gate->rows % kBlockColumns == 0;
}

class FusedTask {
 public:
  FusedTask(const Compute& compute, const Activations& x, const GatedLinear& op,
            ActivationBuffer& out, uint8_t* scratch)
      : kernels_(*compute.kernels),
        x_(x),
        op_(op),
        out_(out),
        scratch_(scratch),
        pairs_(reinterpret_cast<float*>(scratch + aligned(matmul_scratch_bytes(x.cols)))) {}

  void run(int32_t group, int32_t begin, int32_t end) {
    const int32_t width = kernels_.panel_rows;
    const int32_t column = group * kGroupColumns;
    const int32_t columns = std::min(kGroupColumns, op_.gate->rows - column);
    panel_begin_ = column / width;
    panel_end_ = panel_begin_ + (columns + width - 1) / width;
    part(*op_.gate, begin, end, pairs_);
    part(*op_.up, begin, end, pairs_ + kGroupColumns);
    for (int32_t r = begin; r < end; ++r) {
      float* pair = pairs_ + (r - begin) * kPairColumns;
      op_.activate(pair, pair + kGroupColumns, columns, pair);
      out_.quantize_columns(kernels_, r, column, columns, pair);
    }
  }

 private:
  void part(const Matrix& w, int32_t begin, int32_t end, float* y) {
    kernels_.matmul({.weights = &w,
                     .x = &x_,
                     .row_begin = begin,
                     .row_end = end,
                     .panel_begin = panel_begin_,
                     .panel_end = panel_end_,
                     .y = y,
                     .y_stride = kPairColumns,
                     .y_row = begin,
                     .y_panel = panel_begin_,
                     .scratch = scratch_});
  }

  const KernelTable& kernels_;
  const Activations& x_;
  const GatedLinear& op_;
  ActivationBuffer& out_;
  uint8_t* scratch_;
  float* pairs_;  // [rows, gate and up, kGroupColumns]
  int32_t panel_begin_ = 0, panel_end_ = 0;
};

}  // namespace

size_t linear_scratch_bytes(int32_t cols) {
  return aligned(matmul_scratch_bytes(cols)) + kRowsAtOnce * kPairColumns * sizeof(float);
}

void gated_linear(const Compute& compute, const Activations& x, const GatedLinear& op,
                  ActivationBuffer& out) {
  if (can_fuse(*compute.kernels, x, op)) {
    const int32_t groups = (op.gate->rows + kGroupColumns - 1) / kGroupColumns;
    const int32_t blocks = (x.rows + kRowsAtOnce - 1) / kRowsAtOnce;
    const int32_t each = (x.rows + blocks - 1) / blocks;
    compute.pool->run(groups * blocks, [&](int32_t task, int32_t worker) {
      const int32_t begin = task % blocks * each;
      FusedTask(compute, x, op, out, compute.worker_scratch(worker))
          .run(task / blocks, begin, std::min(begin + each, x.rows));
    });
    return;
  }
  linear(compute, x, std::array{Linear{op.gate, op.gate_rows}, Linear{op.up, op.up_rows}});
  const int32_t columns = op.gate->rows;
  compute.for_rows(x.rows, [&](int32_t r) {
    const int64_t at = int64_t{r} * columns;
    op.activate(op.gate_rows + at, op.up_rows + at, columns, out.row(r));
    out.quantize_row(*compute.kernels, r, op.down->column_order);
  });
}

}  // namespace wok
