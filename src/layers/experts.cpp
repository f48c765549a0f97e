#include "layers/experts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "layers/linear.h"

namespace wok {

void ExpertRouting::reserve(const ExpertChoice& choice, int32_t max_tokens) {
  choice_ = choice;
  const auto pairs = static_cast<size_t>(max_tokens) * choice.used;
  expert_.resize(pairs);
  weight_.resize(pairs);
  row_.resize(pairs);
  token_of_.resize(pairs);
  expert_of_.resize(pairs);
  next_.resize(2 * static_cast<size_t>(choice.experts));
  groups_.reserve(std::min(pairs, next_.size()));
}

void ExpertRouting::route(const Compute& compute, const float* logits, int32_t tokens,
                          int32_t exact_tokens) {
  tokens_ = tokens;
  compute.for_rows(tokens, [&](int32_t t) { choose(logits + int64_t{t} * choice_.experts, t); });
  sort(exact_tokens);
}

void ExpertRouting::choose(const float* logits, int32_t token) {
  int32_t* expert = expert_.data() + int64_t{token} * choice_.used;
  float* weight = weight_.data() + int64_t{token} * choice_.used;
  // The largest logits, in order: of few experts out of many.
  int32_t found = 0;
  for (int32_t e = 0; e < choice_.experts; ++e) {
    // What is no number is the worst, so that a broken token still has its experts.
    const float logit = std::isnan(logits[e]) ? -INFINITY : logits[e];
    int32_t at = found;
    while (at > 0 && weight[at - 1] < logit) --at;
    if (at == choice_.used) continue;
    found = std::min(found + 1, choice_.used);
    for (int32_t i = found - 1; i > at; --i) {
      weight[i] = weight[i - 1];
      expert[i] = expert[i - 1];
    }
    weight[at] = logit;
    expert[at] = e;
  }
  const float largest = weight[0];
  float total = 0;
  for (int32_t e = 0; e < choice_.experts; ++e) total += std::exp(logits[e] - largest);
  float chosen = 0;
  for (int32_t i = 0; i < choice_.used; ++i) {
    weight[i] = std::exp(weight[i] - largest) / total;
    chosen += weight[i];
  }
  if (!choice_.normalize) return;
  for (int32_t i = 0; i < choice_.used; ++i) weight[i] /= chosen;
}

void ExpertRouting::sort(int32_t exact_tokens) {
  std::fill(next_.begin(), next_.end(), 0);
  const int32_t used = choice_.used, exact_pairs = exact_tokens * used;
  const auto counter = [&](int32_t pair) -> int32_t& {
    return next_[(pair < exact_pairs ? 0 : choice_.experts) + expert_[pair]];
  };
  for (int32_t pair = 0; pair < rows(); ++pair) ++counter(pair);
  groups_.clear();
  int32_t row = 0;
  for (size_t i = 0; i < next_.size(); ++i) {
    const int32_t count = next_[i];
    next_[i] = row;
    if (count == 0) continue;
    groups_.push_back({static_cast<int32_t>(i) % choice_.experts, row, row + count});
    row += count;
  }
  for (int32_t pair = 0; pair < rows(); ++pair) {
    row_[pair] = counter(pair)++;
    token_of_[row_[pair]] = pair / used;
    expert_of_[row_[pair]] = expert_[pair];
  }
}

void ExpertRouting::combine(const Compute& compute, const float* x, int32_t n, float* y) const {
  compute.for_rows(tokens_, [&](int32_t t) {
    float* out = y + int64_t{t} * n;
    for (int32_t i = 0; i < choice_.used; ++i) {
      const int64_t pair = int64_t{t} * choice_.used + i;
      const float* row = x + int64_t{row_[pair]} * n;
      const float weight = weight_[pair];
      for (int32_t c = 0; c < n; ++c) out[c] += weight * row[c];
    }
  });
}

void expert_linear(const Compute& compute, const Activations& x, std::span<const ExpertRows> groups,
                   int32_t experts, std::span<const ExpertLinear> ops) {
  const int32_t width = std::max(compute.kernels->panel_rows, 1);
  const int32_t rows = ops[0].weights->rows / experts;
  WOK_CHECK(rows % width == 0, "an expert is whole panels");
  const int32_t panels = rows / width;
  // Few rows an expert: as decode, a stretch of panels is a task.
  const int32_t each = panels_per_task(*ops[0].weights);
  const int32_t parts = (panels + each - 1) / each;
  const auto of_op = static_cast<int32_t>(groups.size()) * parts;
  compute.pool->run(of_op * static_cast<int32_t>(ops.size()), [&](int32_t task, int32_t worker) {
    const ExpertLinear& op = ops[task / of_op];
    const ExpertRows& group = groups[task % of_op / parts];
    const int32_t first = group.expert * panels, begin = task % parts * each;
    compute.kernels->matmul({.weights = op.weights,
                             .x = &x,
                             .row_begin = group.row_begin,
                             .row_end = group.row_end,
                             .panel_begin = first + begin,
                             .panel_end = first + std::min(begin + each, panels),
                             .y = op.y,
                             .y_stride = rows,
                             .y_panel = first,
                             .scratch = compute.worker_scratch(worker)});
  });
}

}  // namespace wok
