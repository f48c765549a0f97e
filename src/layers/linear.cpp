#include "layers/linear.h"

#include "base/check.h"

namespace wok {
namespace {

constexpr size_t kMaxOps = 4;
// A task streams about this much of a matrix: big enough to hide claiming it, small enough that
// the last one does not keep the others waiting.
constexpr size_t kTaskBytes = 24 << 10;

}  // namespace

void linear(const Compute& compute, const Activations& x, std::span<const Linear> ops) {
  WOK_CHECK(ops.size() <= kMaxOps, "a group of matrices is small");
  int32_t first_task[kMaxOps + 1] = {}, panels_per_task[kMaxOps] = {};
  for (size_t i = 0; i < ops.size(); ++i) {
    const Matrix& w = *ops[i].weights;
    const int32_t panels = panel_count(*compute.kernels, w.rows);
    int32_t per_task = static_cast<int32_t>(kTaskBytes / (w.panel_bytes + 1)) + 1;
    if (x.rows > 4) per_task = kPanelsPerTask;
    panels_per_task[i] = std::min(std::max(per_task, 1), 1024);
    first_task[i + 1] = first_task[i] + (panels + panels_per_task[i] - 1) / panels_per_task[i];
  }
  compute.pool->run(first_task[ops.size()], [&](int32_t task, int32_t worker) {
    size_t i = 0;
    while (task >= first_task[i + 1]) ++i;
    const Matrix& w = *ops[i].weights;
    const int32_t begin = (task - first_task[i]) * panels_per_task[i];
    const int32_t panels = panel_count(*compute.kernels, w.rows);
    compute.kernels->matmul({.weights = &w,
                             .x = &x,
                             .panel_begin = begin,
                             .panel_end = std::min(begin + panels_per_task[i], panels),
                             .y = ops[i].y,
                             .y_stride = w.rows,
                             .accumulate = ops[i].accumulate,
                             .scratch = compute.worker_scratch(worker)});
  });
}

}  // namespace wok
