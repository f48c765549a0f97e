// Widths that are no multiple of a vector: float weights allow any. A file may say so, hence a
// kernel must neither refuse it by crashing nor compute something else.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tiny_model.h"

namespace wok {
namespace {

using test::TinyModel;
using test::TinyShape;

std::vector<float> logits_of(const TinyModel& tiny) {
  constexpr int32_t kTokens = 19;
  const Model& model = *tiny.model;
  std::vector<int32_t> tokens(kTokens), positions(kTokens), owner(kTokens, 0), pages = {1, 0};
  for (int32_t i = 0; i < kTokens; ++i) {
    tokens[i] = i * 5 % model.config().vocab;
    positions[i] = i;
  }
  const std::vector<int32_t> rows = {kTokens - 1};
  const std::vector<SequenceSpan> spans = {{0, kTokens, kTokens, pages.data()}};
  Workspace work(model.config(), model.weights(), kTokens, 1, 1, tiny.pool->threads());
  const PageMemory memory = std::move(PageMemory::create(model.kv_shape(kKvFormat_f16), 2).value());
  model.forward({tokens, positions, spans, owner, rows}, memory, *tiny.pool, work);
  return {work.logits.begin(), work.logits.begin() + model.config().vocab};
}

TEST(OddSizes, EveryInstructionSetAgreesWithTheReference) {
  const auto choice = choose_isa("");
  ASSERT_TRUE(choice.ok());
  for (const char* type : {"F32", "F16"}) {
    for (const auto& [embedding, feed_forward, vocab] :
         {std::array{20, 17, 101}, {33, 31, 97}, {16, 16, 113}, {100, 70, 99}}) {
      TinyShape shape;
      shape.type = type;
      shape.embedding = embedding;
      shape.feed_forward = feed_forward;
      shape.vocab = vocab;
      shape.heads = 3;
      shape.kv_heads = 1;
      const auto want = logits_of(test::make_tiny(shape, "reference"));
      for (const IsaOption& isa : choice->options) {
        if (!isa.available) continue;
        const auto got = logits_of(test::make_tiny(shape, isa.name));
        ASSERT_EQ(got.size(), static_cast<size_t>(vocab));
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], want[i], 2e-2f) << isa.name << " " << type << " " << embedding;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wok
