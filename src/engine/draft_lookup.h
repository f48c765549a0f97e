// Drafts by prompt lookup: what followed the last time the sequence's newest tokens stood in its
// prompt or output is guessed to follow again (inference with reference, arXiv 2304.04487). One a
// sequence; step thread only. A token costs a few hash look-ups, and nothing allocates after
// start().
//
// It watches itself: every token is compared with what would have been drafted for it, whether a
// draft was computed or not, so that chance() is always measured and a sequence that stopped
// drafting is found out at no cost when drafts would be right again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace wok {

class DraftLookup {
 public:
  // Reserves for a sequence of at most `max_tokens` tokens and reads those it has.
  void start(std::span<const int32_t> tokens, int32_t max_tokens);
  bool started() const { return known_ > 0; }

  // `tokens`: the sequence of the last call, grown.
  void follow(std::span<const int32_t> tokens);

  // Writes the tokens that may follow; how many: out.size(), or 0 when nothing is known. `tokens`
  // as at the last call of follow().
  int32_t propose(std::span<const int32_t> tokens, std::span<int32_t> out) const;
  bool has_proposal() const { return source_ >= 0; }

  // How likely the proposal's token `index` is right when all before it are, 0 to 1.
  float chance(int32_t index) const;

 private:
  static constexpr int32_t kShortest = 2, kLongest = 4;  // tokens a look-up matches
  static constexpr int32_t kKinds = 7;

  static int32_t kind_of(int32_t matched);
  void learn(bool right);
  void enter(std::span<const int32_t> tokens, bool look_up);

  int32_t known_ = 0;    // tokens read
  int32_t source_ = -1;  // where the next token is copied from; -1: nowhere
  int32_t matched_ = 0;  // tokens before source_ that equal the sequence's last ones
  // For each length of an n-gram: behind its latest occurrence. One slot a hash, so an n-gram may
  // push another out; what is found is compared before it is believed.
  std::array<std::vector<int32_t>, kLongest - kShortest + 1> behind_;
  uint32_t mask_ = 0;
  // How often drafts were right lately, by kind_of(matched_): the longer the match, the surer.
  std::array<float, kKinds> right_{};
};

}  // namespace wok
