#include "engine/draft_lookup.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace wok {
namespace {

// Where the kinds begin: 0 goes on behind a single replaced token, the others are matched tokens.
constexpr int32_t kKindFrom[] = {0, 2, 3, 4, 6, 9, 17};
// What is believed before anything was seen.
constexpr float kRightAtFirst[] = {0.4f, 0.25f, 0.4f, 0.6f, 0.75f, 0.85f, 0.9f};
constexpr float kNew = 0.125f;         // weight of the newest token
constexpr int32_t kSureMatch = 9;      // so long a match goes on behind one other token
constexpr int32_t kCountedMatch = 17;  // longer ones need not be told apart

constexpr uint32_t mix(uint32_t hash, int32_t token) {
  hash = (hash ^ static_cast<uint32_t>(token)) * 0x9e3779b1u;
  return hash ^ (hash >> 15);
}

}  // namespace

int32_t DraftLookup::kind_of(int32_t matched) {
  int32_t kind = kKinds - 1;
  while (matched < kKindFrom[kind]) --kind;
  return kind;
}

void DraftLookup::start(std::span<const int32_t> tokens, int32_t max_tokens) {
  static_assert(std::size(kKindFrom) == kKinds && std::size(kRightAtFirst) == kKinds);
  WOK_CHECK(static_cast<int32_t>(tokens.size()) <= max_tokens, "a sequence keeps its limit");
  const uint32_t slots = std::bit_ceil(static_cast<uint32_t>(max_tokens));
  mask_ = slots - 1;
  for (auto& table : behind_) table.assign(slots, -1);
  std::copy(std::begin(kRightAtFirst), std::end(kRightAtFirst), right_.begin());
  source_ = -1;
  // The prompt is read without guessing: how often it repeats itself says little of the output.
  for (known_ = 0; known_ < static_cast<int32_t>(tokens.size());) {
    ++known_;
    enter(tokens, known_ == static_cast<int32_t>(tokens.size()));
  }
}

void DraftLookup::learn(bool right) {
  float& share = right_[kind_of(matched_)];
  share += kNew * ((right ? 1.0f : 0.0f) - share);
}

void DraftLookup::follow(std::span<const int32_t> tokens) {
  while (known_ < static_cast<int32_t>(tokens.size())) {
    const int32_t token = tokens[known_];
    const int32_t last_match = matched_, last_source = source_;
    if (source_ >= 0) {
      const bool right = tokens[source_] == token;
      learn(right);
      source_ = right ? source_ + 1 : -1;
      matched_ = right ? matched_ + 1 : 0;
    }
    ++known_;
    enter(tokens, source_ < 0);
    if (source_ < 0 && last_source >= 0 && last_match >= kSureMatch && last_source + 1 < known_) {
      source_ = last_source + 1;
      matched_ = 0;
    }
  }
}

// Enters the n-grams that end at the newest token, after looking up where they stood before.
void DraftLookup::enter(std::span<const int32_t> tokens, bool look_up) {
  uint32_t hash = 0;
  uint32_t slots[kLongest - kShortest + 1];
  const int32_t longest = std::min(known_, kLongest);
  for (int32_t n = 1; n <= longest; ++n) {
    hash = mix(hash, tokens[known_ - n]);
    if (n >= kShortest) slots[n - kShortest] = hash & mask_;
  }
  for (int32_t n = longest; look_up && source_ < 0 && n >= kShortest; --n) {
    const int32_t behind = behind_[n - kShortest][slots[n - kShortest]];
    if (behind < 0) continue;
    int32_t matched = 0;
    while (matched < std::min(behind, kCountedMatch) &&
           tokens[behind - 1 - matched] == tokens[known_ - 1 - matched]) {
      ++matched;
    }
    if (matched < n) continue;  // another n-gram of the same hash
    source_ = behind;
    matched_ = matched;
  }
  for (int32_t n = kShortest; n <= longest; ++n) {
    behind_[n - kShortest][slots[n - kShortest]] = known_;
  }
}

int32_t DraftLookup::propose(std::span<const int32_t> tokens, std::span<int32_t> out) const {
  if (source_ < 0) return 0;
  const auto count = static_cast<int32_t>(out.size());
  for (int32_t i = 0; i < count; ++i) {
    // Past the sequence's end it copies from the draft itself: a short loop goes on for ever.
    const int32_t from = source_ + i;
    out[i] = from < known_ ? tokens[from] : out[from - known_];
  }
  return count;
}

float DraftLookup::chance(int32_t index) const {
  // Behind a replaced token the match is none long; each token that was right makes it one longer.
  return right_[kind_of(matched_ + index)];
}

}  // namespace wok
