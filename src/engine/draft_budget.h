// How many drafted tokens a step verifies, and whose: learns what a row more costs a decode step on
// this machine now, and computes a draft only where it is likely to bring more than it costs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "scheduler/sequence.h"

namespace wok {

// A decoding sequence's part in a step.
struct DraftShare {
  // How likely a draft is right when all before it are, for each of `most`.
  std::array<float, kMaxDraftTokens> chance{};
  int32_t most = 0;       // drafts it may have
  double draft_ms = 0;    // what it takes to make one
  bool by_model = false;  // who makes it (draft_model.h); looked up otherwise
  int32_t count = 0;      // drafts it gets
  double reach = 1;       // how likely its drafts so far are all right
  double expected = 1;    // tokens the step gives it, on average
};

class DraftBudget {
 public:
  // max_rows: of a step that verifies drafts, those of its decodes included. row_cost: of a further
  // row, relative to a step of one; 0: learned.
  explicit DraftBudget(int32_t max_rows, double row_cost = 0)
      : max_rows_(max_rows), fixed_(row_cost > 0), row_ms_(fixed_ ? row_cost : kUsual) {}
  int32_t max_rows() const { return max_rows_; }

  // A step of decodes with `rows` rows, drafts included, took `step_ms`.
  void record(int32_t rows, double step_ms) {
    if (fixed_) return;
    if (weight_ >= kWarm) step_ms = std::min(step_ms, kOutlier * this->step_ms(rows));
    const double r = rows;
    weight_ = kKeep * weight_ + 1;
    sum_rows_ = kKeep * sum_rows_ + r;
    sum_ms_ = kKeep * sum_ms_ + step_ms;
    sum_rows2_ = kKeep * sum_rows2_ + r * r;
    sum_rows_ms_ = kKeep * sum_rows_ms_ + r * step_ms;
    fit();
  }

  double row_ms() const { return row_ms_; }
  double step_ms(int32_t rows) const { return first_ms_ + row_ms_ * (rows - 1); }

  // Hands out rows one by one to whoever gets most of the next for its cost, while a row's expected
  // token comes cheaper than the step's average one. Nobody's stream becomes slower than kSlowest
  // allows.
  void share(std::span<DraftShare> shares) const {
    int32_t rows = static_cast<int32_t>(shares.size());
    double expected = rows;
    const double undisturbed = step_ms(rows);
    double spent = undisturbed;
    for (; rows < max_rows_; ++rows) {
      DraftShare* best = nullptr;
      double best_reach = 0, best_cost = 1;
      for (DraftShare& s : shares) {
        const double reach = s.count < s.most ? s.reach * s.chance[s.count] : 0;
        const double cost = row_ms_ + s.draft_ms;
        if (reach * best_cost > best_reach * cost) best = &s, best_reach = reach, best_cost = cost;
      }
      if (best == nullptr || best_reach * spent < kMargin * best_cost * expected) return;
      double slowest = best->expected + best_reach;
      for (const DraftShare& s : shares) {
        if (&s != best) slowest = std::min(slowest, s.expected);
      }
      if (spent + best_cost > kSlowest * undisturbed * slowest) return;
      spent += best_cost;
      best->reach = best_reach;
      best->expected += best_reach;
      expected += best_reach;
      ++best->count;
    }
  }

 private:
  static constexpr double kMargin = 1.15;  // chances are estimates
  static constexpr double kSlowest = 1.4;  // times as long as without drafts
  static constexpr double kKeep = 0.98;    // weight of the steps before, a step
  static constexpr double kWarm = 8;       // steps before one can be an outlier
  static constexpr double kOutlier = 2;    // times what was expected: the machine was elsewhere
  // A row's cost relative to a step of one, before any was measured and its bounds: a fit of noise
  // must not switch drafts off for good, or make them free.
  static constexpr double kUsual = 0.14, kLeast = 0.02, kMost = 0.5;
  static constexpr double kUsualWeight = 0.25;  // of kUsual, in rows squared

  // Least squares with fading weights, pulled to the usual cost while the rows vary little.
  void fit() {
    const double rows = sum_rows_ / weight_, ms = sum_ms_ / weight_;
    const double spread = std::max(sum_rows2_ / weight_ - rows * rows, 0.0);
    const double together = sum_rows_ms_ / weight_ - rows * ms;
    const double usual = kUsual * ms / (1 + kUsual * (rows - 1));
    const double slope = (together + kUsualWeight * usual) / (spread + kUsualWeight);
    // slope / (ms - slope * (rows - 1)) within the bounds, solved for the slope.
    const auto bound = [&](double share) { return share * ms / (1 + share * (rows - 1)); };
    row_ms_ = std::clamp(slope, bound(kLeast), bound(kMost));
    first_ms_ = ms - row_ms_ * (rows - 1);
  }

  int32_t max_rows_;
  bool fixed_;
  double weight_ = 0, sum_rows_ = 0, sum_ms_ = 0, sum_rows2_ = 0, sum_rows_ms_ = 0;
  double first_ms_ = 1, row_ms_;
};

}  // namespace wok
