#include "layers/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "kernels/isa.h"

namespace wok {
namespace {

constexpr int32_t kHeads = 6, kKvHeads = 2, kDim = 32, kPages = 200;
constexpr int64_t kRowFloats = int64_t{kHeads} * kDim;

struct SequenceCase {
  int32_t kv_len, query_len;
  int32_t shared_pages;  // of the first case's
};

// Sequences whose keys and values are in place, and the flat list of their queries.
class AttentionCase {
 public:
  // special: scores are capped and heads have sinks.
  AttentionCase(const KernelTable& kernels, const std::vector<SequenceCase>& cases,
                bool special = false)
      : kernels_(kernels), memory_(*PageMemory::create({1, kKvHeads, kDim}, kPages)), pool_(3) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    int32_t free_page = 0, tokens = 0;
    for (const SequenceCase& c : cases) {
      std::vector<int32_t>& pages = page_tables_.emplace_back();
      for (int32_t p = 0; p * kPageTokens < c.kv_len; ++p) {
        // Every seventh page of the pool, so that none lies beside the one before it.
        pages.push_back(p < c.shared_pages ? page_tables_[0][p] : free_page++ * 7 % kPages);
      }
      for (int32_t t = c.shared_pages * kPageTokens; t < c.kv_len; ++t) {
        for (int32_t h = 0; h < kKvHeads; ++h) {
          std::vector<float> key(kDim), value(kDim);
          for (float& x : key) x = normal(random);
          for (float& x : value) x = normal(random);
          kernels.kv_f16.store(memory_.view(0, h), pages.data(), t, kDim, key.data(), value.data());
        }
      }
      spans_.push_back({tokens, c.query_len, c.kv_len, nullptr});
      for (int32_t i = 0; i < c.query_len; ++i) positions_.push_back(c.kv_len - c.query_len + i);
      tokens += c.query_len;
    }
    EXPECT_LE(free_page, kPages);
    for (size_t s = 0; s < spans_.size(); ++s) spans_[s].page_table = page_tables_[s].data();
    q_.resize(tokens * kRowFloats);
    for (float& x : q_) x = normal(random);
    attention_.reserve({kHeads, kKvHeads, kDim, 0.7f, special ? 3.0f : 0.0f}, tokens,
                       static_cast<int32_t>(cases.size()));
    if (special) sinks_ = {0.5f, 4, -1, 2, -9, 1};
  }

  std::vector<float> together(int32_t window) {
    Batch batch;
    batch.positions = positions_;
    batch.sequences = spans_;
    return run(batch, q_.data(), window);
  }

  // Each token of sequence s in a step of its own.
  std::vector<float> one_by_one(size_t s, int32_t window) {
    std::vector<float> out;
    for (int32_t t = spans_[s].query_begin; t < spans_[s].query_begin + spans_[s].query_len; ++t) {
      const SequenceSpan span{0, 1, positions_[t] + 1, spans_[s].page_table};
      Batch batch;
      batch.positions = {&positions_[t], 1};
      batch.sequences = {&span, 1};
      const std::vector<float> row = run(batch, &q_[t * kRowFloats], window);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }

  std::vector<float> slice(const std::vector<float>& all, size_t s) const {
    const auto begin = all.begin() + spans_[s].query_begin * kRowFloats;
    return {begin, begin + spans_[s].query_len * kRowFloats};
  }

 private:
  std::vector<float> run(const Batch& batch, const float* q, int32_t window) {
    std::vector<float> out(batch.positions.size() * kRowFloats, std::nanf(""));
    attention_.plan(batch);
    attention_.run({&kernels_, &pool_, nullptr, 0}, batch, memory_,
                   {0, window, sinks_.empty() ? nullptr : sinks_.data()}, q, out.data());
    return out;
  }

  const KernelTable& kernels_;
  PageMemory memory_;
  ComputePool pool_;
  Attention attention_;
  std::vector<std::vector<int32_t>> page_tables_;
  std::vector<SequenceSpan> spans_;
  std::vector<int32_t> positions_;
  std::vector<float> q_, sinks_;
};

// Decodes that share one, two and no splits of pages, drafts, a prompt's chunk, a first token.
const std::vector<SequenceCase> kCases = {{700, 1, 0},  {650, 1, 36}, {530, 4, 16}, {300, 1, 0},
                                          {620, 1, 36}, {400, 70, 0}, {5, 1, 0},    {256, 2, 0}};

TEST(Attention, RowsAreTheSameAloneTogetherAndWithSharedPages) {
  for (const bool special : {false, true}) {
    AttentionCase run(*choose_isa("")->kernels, kCases, special);
    for (const int32_t window : {0, 100, 300}) {
      const std::vector<float> all = run.together(window);
      for (size_t s = 0; s < kCases.size(); ++s) {
        EXPECT_EQ(run.slice(all, s), run.one_by_one(s, window)) << "case " << s << " of " << window;
      }
    }
  }
}

TEST(Attention, AgreesWithTheReference) {
  for (const bool special : {false, true}) {
    AttentionCase run(*choose_isa("")->kernels, kCases, special);
    AttentionCase plain(reference_kernels(), kCases, special);
    for (const int32_t window : {0, 100}) {
      const std::vector<float> got = run.together(window), want = plain.together(window);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5f) << i;
    }
  }
}

}  // namespace
}  // namespace wok
