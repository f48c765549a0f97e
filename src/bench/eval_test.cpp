#include "bench/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/tiny_model.h"

namespace wok::bench {
namespace {

using test::make_tiny;
using test::TinyModel;
using testing::HasSubstr;

std::vector<int32_t> text_of(int32_t n) {
  std::vector<int32_t> tokens(n);
  for (int32_t i = 0; i < n; ++i) tokens[i] = (i * 37 + i / 7) % 160;
  return tokens;
}

Result<EvalReport> eval(const TinyModel& m, const TinyModel* against, EvalOptions options,
                        const std::vector<int32_t>& tokens = text_of(200)) {
  const EvalModel model{m.model.get(), &kKvFormat_f16, false};
  const EvalModel other{against != nullptr ? against->model.get() : nullptr, &kKvFormat_f16, false};
  return evaluate(model, against != nullptr ? &other : nullptr, tokens, options, *m.pool,
                  [](int32_t, int32_t) { return true; });
}

// Logits of all rows of a chunk, in one call of the reference kernels.
std::vector<float> logits_of(const TinyModel& m, const std::vector<int32_t>& tokens) {
  const auto n = static_cast<int32_t>(tokens.size());
  Workspace work(m.model->config(), m.model->weights(), n, 1, n, m.pool->threads());
  PageMemory memory =
      std::move(PageMemory::create(m.model->kv_shape(kKvFormat_f16), n / kPageTokens + 1).value());
  std::vector<int32_t> positions(n), pages(n / kPageTokens + 1), owner(n, 0);
  std::iota(positions.begin(), positions.end(), 0);
  std::iota(pages.begin(), pages.end(), 0);
  const SequenceSpan span{0, n, n, pages.data()};
  m.model->forward({tokens, positions, {&span, 1}, owner, positions, n}, memory, *m.pool, work);
  return {work.logits.data(), work.logits.data() + int64_t{n} * m.model->config().vocab};
}

// Natural logarithm of the softmax of row `row` at `id`, in double.
double log_p(const std::vector<float>& logits, int32_t row, int32_t id) {
  const float* x = &logits[static_cast<size_t>(row) * 160];
  double total = 0;
  for (int i = 0; i < 160; ++i) total += std::exp(double{x[i]});
  return x[id] - std::log(total);
}

int32_t top_of(const std::vector<float>& logits, int32_t row) {
  const auto begin = logits.begin() + row * 160;
  return static_cast<int32_t>(std::max_element(begin, begin + 160) - begin);
}

TEST(Eval, PerplexityAndDivergenceByTheirDefinitions) {
  test::TinyShape shape;
  const TinyModel p = make_tiny(shape, "reference", 1), q = make_tiny(shape, "reference", 2);
  // Two chunks of 96, whose first tokens are replaced; rows 48 to 94 are scored. The reference gets
  // some right.
  std::vector<int32_t> text = text_of(200);
  for (const int32_t chunk : {0, 1}) {
    for (const int32_t row : {50, 60, 70, 80}) {
      std::vector<int32_t> part(text.begin() + 96 * chunk, text.begin() + 96 * (chunk + 1));
      part[0] = 0;
      text[96 * chunk + row + 1] = top_of(logits_of(p, part), row);
    }
  }
  const auto report = eval(q, &p, {.chunk_tokens = 96, .bos_id = 0}, text);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->chunks, 2);
  EXPECT_EQ(report->scored_tokens, 2 * 47);
  double loss = 0, reference_loss = 0, kl = 0, same = 0, right = 0, lost = 0;
  for (int32_t chunk = 0; chunk < 2; ++chunk) {
    std::vector<int32_t> part(text.begin() + 96 * chunk, text.begin() + 96 * (chunk + 1));
    part[0] = 0;
    const auto a = logits_of(p, part), b = logits_of(q, part);
    for (int32_t row = 48; row < 95; ++row) {
      const int32_t next = part[row + 1];
      loss -= log_p(b, row, next);
      reference_loss -= log_p(a, row, next);
      for (int32_t i = 0; i < 160; ++i) {
        kl += std::exp(log_p(a, row, i)) * (log_p(a, row, i) - log_p(b, row, i));
      }
      same += top_of(a, row) == top_of(b, row);
      right += top_of(a, row) == next;
      lost += top_of(a, row) == next && top_of(b, row) != next;
    }
  }
  EXPECT_NEAR(report->log_loss.value, loss / 94, 1e-5);
  EXPECT_NEAR(report->perplexity.value, std::exp(loss / 94), 1e-3 * std::exp(loss / 94));
  const Divergence& d = *report->divergence;
  EXPECT_NEAR(d.reference_perplexity, std::exp(reference_loss / 94), 1e-2);
  EXPECT_NEAR(d.perplexity_ratio.value, std::exp((loss - reference_loss) / 94), 1e-4);
  EXPECT_NEAR(d.kl.value, kl / 94, 1e-4);
  EXPECT_NEAR(d.same_top.value, same / 94, 1e-9);
  ASSERT_GT(right, 0);
  EXPECT_NEAR(d.flipped.value, lost / right, 1e-9);
  EXPECT_LE(d.kl_median, d.kl_99);
  EXPECT_LE(d.kl_99, d.kl_max);
  EXPECT_GT(d.kl.value, 0.01);  // two models, after all
}

TEST(Eval, AModelIsNotFarFromItself) {
  const TinyModel m = make_tiny({});
  const auto report = eval(m, &m, {.chunk_tokens = 64});
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(report->divergence->kl.value, 0, 1e-6);
  EXPECT_EQ(report->divergence->same_top.value, 1);
  EXPECT_EQ(report->divergence->perplexity_ratio.value, 1);
  EXPECT_EQ(report->divergence->right_delta_rms, 0);
}

// Chunks are computed in pieces; that must not show.
TEST(Eval, PiecesOfAChunkAreTheChunk) {
  const TinyModel m = make_tiny({}, "reference");
  const auto report = eval(m, nullptr, {.chunk_tokens = 300, .chunks = 1}, text_of(320));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->scored_tokens, 149);
  std::vector<int32_t> part = text_of(300);
  const auto logits = logits_of(m, part);
  double loss = 0;
  for (int32_t row = 150; row < 299; ++row) loss -= log_p(logits, row, part[row + 1]);
  EXPECT_NEAR(report->log_loss.value, loss / 149, 1e-5);
  EXPECT_TRUE(std::isnan(report->log_loss.half_width));  // of one chunk nobody knows
  EXPECT_EQ(nlohmann::json::parse(eval_json(*report, "m", "", "t"))["log_loss"]["ci95"], nullptr);
  EXPECT_THAT(eval_table(*report), HasSubstr("scored                   149 tokens"));
}

TEST(Eval, WhatCannotBeMeasuredIsSaid) {
  const TinyModel m = make_tiny({});
  const auto error = [&](const Result<EvalReport>& report) {
    return report.ok() ? std::string() : report.error().message;
  };
  EXPECT_THAT(error(eval(m, nullptr, {.chunk_tokens = 256})), HasSubstr("has 200 tokens"));
  EXPECT_THAT(error(eval(m, nullptr, {.chunk_tokens = 8192}, text_of(9000))),
              HasSubstr("over a model's context of 4096"));
  test::TinyShape larger;
  larger.vocab = 192;
  const TinyModel other = make_tiny(larger);
  EXPECT_THAT(error(eval(m, &other, {.chunk_tokens = 64})), HasSubstr("160 and 192"));
}

TEST(Eval, StopsWhenTold) {
  const TinyModel m = make_tiny({});
  const EvalModel model{m.model.get(), &kKvFormat_f16, false};
  const auto report = evaluate(model, nullptr, text_of(640), {.chunk_tokens = 64}, *m.pool,
                               [](int32_t done, int32_t) { return done < 2; });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kCancelled);
}

}  // namespace
}  // namespace wok::bench
