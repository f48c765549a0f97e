#include "layers/linear.h"

#include <algorithm>

#include "base/check.h"

namespace wok {
namespace {

constexpr size_t kMaxOps = 4;
// A decode task streams at least kPanelsPerTask panels side by side, and about this much of a
// matrix: big enough to hide claiming it, small enough that the last one does not keep the others
// waiting.
constexpr size_t kTaskBytes = 32 << 10;
// A prompt's task unpacks kPanelsPerTask panels for all rows it has: the more rows, the less that
// costs. Rows are divided only where there would be too few tasks to keep all threads busy.
constexpr int32_t kLeastRows = 128;
constexpr int32_t kTasksPerThread = 4;

struct Split {
  int32_t panels_per_task = 1, panel_tasks = 0, rows_per_task = 0, row_tasks = 1;
};

Split split(const Compute& compute, const Activations& x, const Matrix& w) {
  Split s;
  const int32_t panels = panel_count(*compute.kernels, w.rows);
  s.rows_per_task = x.rows;
  s.panels_per_task = kPanelsPerTask;
  if (x.rows <= compute.kernels->stream_rows) s.panels_per_task = panels_per_task(w);
  s.panel_tasks = (panels + s.panels_per_task - 1) / s.panels_per_task;
  const int32_t wanted = kTasksPerThread * compute.pool->threads();
  if (s.panel_tasks < wanted && x.rows >= 2 * kLeastRows) {
    const int32_t most = x.rows / kLeastRows;
    const int32_t parts = std::min(most, (wanted + s.panel_tasks - 1) / s.panel_tasks);
    s.rows_per_task = (x.rows + parts - 1) / parts;
    s.row_tasks = (x.rows + s.rows_per_task - 1) / s.rows_per_task;
  }
  return s;
}

}  // namespace

int32_t panels_per_task(const Matrix& w) {
  const auto groups = static_cast<int32_t>(kTaskBytes / (kPanelsPerTask * w.panel_bytes + 1));
  return kPanelsPerTask * std::clamp(groups, 1, 256);
}

void linear(const Compute& compute, const Activations& x, std::span<const Linear> ops) {
  WOK_CHECK(ops.size() <= kMaxOps, "a group of matrices is small");
  int32_t first_task[kMaxOps + 1] = {};
  Split splits[kMaxOps];
  for (size_t i = 0; i < ops.size(); ++i) {
    splits[i] = split(compute, x, *ops[i].weights);
    first_task[i + 1] = first_task[i] + splits[i].panel_tasks * splits[i].row_tasks;
  }
  compute.pool->run(first_task[ops.size()], [&](int32_t task, int32_t worker) {
    size_t i = 0;
    while (task >= first_task[i + 1]) ++i;
    const Matrix& w = *ops[i].weights;
    const Split& s = splits[i];
    const int32_t part = task - first_task[i];
    const int32_t panel = part / s.row_tasks * s.panels_per_task;
    const int32_t row = part % s.row_tasks * s.rows_per_task;
    compute.kernels->matmul(
        {.weights = &w,
         .x = &x,
         .row_begin = row,
         .row_end = std::min(row + s.rows_per_task, x.rows),
         .panel_begin = panel,
         .panel_end = std::min(panel + s.panels_per_task, panel_count(*compute.kernels, w.rows)),
         .y = ops[i].y,
         .y_stride = w.rows,
         .accumulate = ops[i].accumulate,
         .scratch = compute.worker_scratch(worker)});
  });
}

}  // namespace wok
