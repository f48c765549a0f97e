// A mixture of experts: a token's feed-forward is the sum of those of a few experts that a router
// chose for it. Tokens are sorted by expert, so that each expert that anybody chose is read once
// and meets all its tokens together; one that nobody chose is not read.
//
// An expert's matrices lie behind one another in one Matrix of experts * rows rows, as in the file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/compute.h"

namespace wok {

struct ExpertChoice {
  int32_t experts = 0;     // that there are
  int32_t used = 0;        // by each token
  bool normalize = false;  // the chosen ones' weights are made to add up to 1
};

// Rows of one expert: [row_begin, row_end) of the sorted order.
struct ExpertRows {
  int32_t expert, row_begin, row_end;
};

class ExpertRouting {
 public:
  void reserve(const ExpertChoice& choice, int32_t max_tokens);

  // logits [tokens, experts]: chooses by the largest probabilities, the lower expert first among
  // equals, then sorts the tokens * used pairs. Those of the first `exact_tokens` tokens come
  // before all others, since they are multiplied in another form.
  void route(const Compute& compute, const float* logits, int32_t tokens, int32_t exact_tokens);

  std::span<const ExpertRows> groups() const { return groups_; }
  int32_t rows() const { return tokens_ * choice_.used; }
  int32_t token_of(int32_t row) const { return token_of_[row]; }
  int32_t expert_of(int32_t row) const { return expert_of_[row]; }

  // y[token] += the weighted sum of its experts' rows of x [rows(), n], the heaviest first.
  void combine(const Compute& compute, const float* x, int32_t n, float* y) const;

 private:
  void choose(const float* logits, int32_t token);
  void sort(int32_t exact_tokens);

  ExpertChoice choice_;
  int32_t tokens_ = 0;
  std::vector<int32_t> expert_;                // [tokens, used]
  std::vector<float> weight_;                  // [tokens, used]
  std::vector<int32_t> row_;                   // [tokens, used]: its place in the sorted order
  std::vector<int32_t> token_of_, expert_of_;  // [rows]
  std::vector<int32_t> next_;                  // [forms, experts]
  std::vector<ExpertRows> groups_;
};

// One matrix of every expert, and where its outputs go.
struct ExpertLinear {
  const Matrix* weights = nullptr;
  float* y = nullptr;  // [x.rows, weights->rows / experts]
};

// Rows of x, sorted, times their experts' matrices. `weights->rows / experts` is a multiple of 16.
void expert_linear(const Compute& compute, const Activations& x, std::span<const ExpertRows> groups,
                   int32_t experts, std::span<const ExpertLinear> ops);

}  // namespace wok
