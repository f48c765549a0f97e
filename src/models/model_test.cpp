// Properties of the forward pass, bit for bit, on small synthetic models of each architecture and
// every instruction set of this machine.
#include "models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/support/tiny_model.h"

namespace wok {
namespace {

using test::make_tiny;
using test::TinyModel;
using test::TinyShape;

struct Piece {
  int32_t sequence;
  int32_t begin, count;
};

// Several sequences over one page memory, with page tables of the test's choosing.
class Bench {
 public:
  Bench(const TinyModel& tiny, std::vector<std::vector<int32_t>> prompts, uint32_t shuffle)
      : tiny_(tiny),
        prompts_(std::move(prompts)),
        work_(tiny.model->config(), tiny.model->weights(), 256, 8, 8, tiny.pool->threads()),
        memory_(std::move(PageMemory::create(tiny.model->kv_shape(kKvFormat_f16), 64).value())) {
    std::vector<int32_t> pages(64);
    std::iota(pages.begin(), pages.end(), 0);
    if (shuffle != 0) std::shuffle(pages.begin(), pages.end(), std::mt19937(shuffle));
    for (size_t s = 0; s < prompts_.size(); ++s) {
      tables_.emplace_back(pages.begin() + static_cast<std::ptrdiff_t>(8 * s),
                           pages.begin() + static_cast<std::ptrdiff_t>(8 * s + 8));
    }
  }

  // Computes the pieces in one batch, the first `outputs` of them as tokens of outputs, the others
  // as tokens of prompts; returns the logits of each piece's last token.
  std::vector<std::vector<float>> step(const std::vector<Piece>& pieces, size_t outputs = 0) {
    int32_t exact = 0;
    std::vector<int32_t> tokens, positions, owner, rows;
    std::vector<SequenceSpan> spans;
    for (const Piece& p : pieces) {
      const auto first = static_cast<int32_t>(tokens.size());
      for (int32_t i = p.begin; i < p.begin + p.count; ++i) {
        tokens.push_back(prompts_[p.sequence][i]);
        positions.push_back(i);
        owner.push_back(static_cast<int32_t>(spans.size()));
      }
      spans.push_back({first, p.count, p.begin + p.count, tables_[p.sequence].data()});
      rows.push_back(first + p.count - 1);
      if (spans.size() <= outputs) exact = first + p.count;
    }
    const Batch batch{tokens, positions, spans, owner, rows, exact};
    if (between_layers) {
      for (int32_t i = 0; i < tiny_.model->config().layers; ++i) {
        between_layers();
        tiny_.model->forward_layers(batch, memory_, *tiny_.pool, work_, i, i + 1);
      }
    } else {
      tiny_.model->forward(batch, memory_, *tiny_.pool, work_);
    }
    std::vector<std::vector<float>> out;
    const auto vocab = static_cast<size_t>(tiny_.model->config().vocab);
    for (size_t i = 0; i < rows.size(); ++i) {
      out.emplace_back(work_.logits.begin() + static_cast<std::ptrdiff_t>(i * vocab),
                       work_.logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocab));
    }
    return out;
  }

  std::function<void()> between_layers;  // when set, layers are computed one by one

 private:
  const TinyModel& tiny_;
  std::vector<std::vector<int32_t>> prompts_;
  Workspace work_;
  PageMemory memory_;
  std::vector<std::vector<int32_t>> tables_;
};

std::vector<int32_t> prompt(int32_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& t : tokens) t = static_cast<int32_t>(random() % 160);
  return tokens;
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  const auto choice = choose_isa("");
  for (const IsaOption& option : choice->options) {
    if (option.available) names.push_back(option.name);
  }
  return names;
}

// kind: an architecture, or "llama_f16".
TinyShape shape_of(const std::string& kind) {
  if (kind != "llama_f16") return test::tiny_shape(kind);
  TinyShape shape;
  shape.type = "F16";
  return shape;
}

class Forward : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  TinyModel tiny() const {
    const auto& [isa, kind] = GetParam();
    return make_tiny(shape_of(kind), isa);
  }
};

TEST_P(Forward, ChunkedPrefillEqualsWhole) {
  const TinyModel m = tiny();
  const auto tokens = prompt(90, 1);
  Bench whole(m, {tokens}, 0), chunked(m, {tokens}, 0);
  const auto want = whole.step({{0, 0, 90}})[0];
  int32_t at = 0;
  std::vector<float> got;
  for (const int32_t n : {1, 16, 5, 40, 27, 1}) {
    got = chunked.step({{0, at, n}})[0];
    at += n;
  }
  ASSERT_EQ(at, 90);
  EXPECT_EQ(got, want);
}

TEST_P(Forward, PagedEqualsContiguous) {
  const TinyModel m = tiny();
  const auto tokens = prompt(100, 2);
  Bench contiguous(m, {tokens}, 0), scattered(m, {tokens}, 99);
  EXPECT_EQ(contiguous.step({{0, 0, 100}})[0], scattered.step({{0, 0, 100}})[0]);
}

TEST_P(Forward, AloneEqualsBatched) {
  const TinyModel m = tiny();
  const std::vector<std::vector<int32_t>> prompts = {prompt(33, 3), prompt(64, 4), prompt(7, 5)};
  Bench together(m, prompts, 5);
  // A mixed batch: prefill chunks, and decodes of one token beside them.
  together.step({{0, 0, 32}, {1, 0, 20}});
  together.step({{0, 32, 1}, {1, 20, 43}, {2, 0, 6}});
  const auto batched = together.step({{1, 63, 1}, {2, 6, 1}});
  const auto first = Bench(m, {prompts[1]}, 0).step({{0, 0, 64}})[0];
  const auto second = Bench(m, {prompts[2]}, 0).step({{0, 0, 7}})[0];
  EXPECT_EQ(batched[0], first);
  EXPECT_EQ(batched[1], second);
}

// Tokens of outputs and of prompts, each in their own form, do not mind each other either.
TEST_P(Forward, OutputsBesidePromptsEqualThemselvesAlone) {
  const TinyModel m = tiny();
  const std::vector<std::vector<int32_t>> prompts = {prompt(60, 13), prompt(40, 14),
                                                     prompt(120, 15)};
  Bench together(m, prompts, 8);
  together.step({{0, 0, 50}, {1, 0, 39}});
  const auto first = together.step({{0, 50, 3}, {1, 39, 1}, {2, 0, 97}}, 2);
  const auto second = together.step({{0, 53, 7}, {2, 97, 23}}, 1);

  Bench output(m, {prompts[0]}, 0), one(m, {prompts[1]}, 0), long_prompt(m, {prompts[2]}, 0);
  output.step({{0, 0, 50}});
  EXPECT_EQ(output.step({{0, 50, 3}}, 1)[0], first[0]);
  EXPECT_EQ(output.step({{0, 53, 7}}, 1)[0], second[0]);
  one.step({{0, 0, 39}});
  EXPECT_EQ(one.step({{0, 39, 1}}, 1)[0], first[1]);
  EXPECT_EQ(long_prompt.step({{0, 0, 120}})[0], second[1]);
}

// A pass that lasts several steps: other batches are computed between its layers.
TEST_P(Forward, LayerByLayerEqualsWhole) {
  const TinyModel m = tiny();
  const std::vector<std::vector<int32_t>> prompts = {prompt(70, 21), prompt(33, 22)};
  Bench whole(m, prompts, 0), passes(m, prompts, 0), other(m, {prompt(50, 23)}, 7);
  int32_t others = 0;
  passes.between_layers = [&] { other.step({{0, others++, 1}}); };
  EXPECT_EQ(passes.step({{0, 0, 40}, {1, 0, 33}}), whole.step({{0, 0, 40}, {1, 0, 33}}));
  EXPECT_EQ(passes.step({{0, 40, 30}}), whole.step({{0, 40, 30}}));
  EXPECT_EQ(others, 2 * m.model->config().layers);
}

TEST_P(Forward, NumberOfThreadsDoesNotMatter) {
  const auto& [isa, kind] = GetParam();
  const TinyShape shape = shape_of(kind);
  const TinyModel one = make_tiny(shape, isa, 1, 1), four = make_tiny(shape, isa, 1, 4);
  const auto tokens = prompt(70, 6);
  EXPECT_EQ(Bench(one, {tokens}, 0).step({{0, 0, 70}}),
            Bench(four, {tokens}, 0).step({{0, 0, 70}}));
}

TEST_P(Forward, AgreesWithTheReferenceKernels) {
  const auto& [isa, kind] = GetParam();
  const TinyShape shape = shape_of(kind);
  const TinyModel fast = tiny(), plain = make_tiny(shape, "reference");
  const auto tokens = prompt(80, 7);
  const auto got = Bench(fast, {tokens}, 0).step({{0, 0, 80}})[0];
  const auto want = Bench(plain, {tokens}, 0).step({{0, 0, 80}})[0];
  // Float weights differ by rounding; int8 activations by about a percent of the logits' size.
  const float tolerance = shape.type == "F16" ? 2e-2f : 0.35f;
  double dot = 0, a = 0, b = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance) << i;
    dot += got[i] * want[i], a += got[i] * got[i], b += want[i] * want[i];
  }
  EXPECT_GT(dot / std::sqrt(a * b), 0.998);
}

INSTANTIATE_TEST_SUITE_P(
    Isas, Forward,
    testing::Combine(testing::ValuesIn(isas()),
                     testing::Values("llama", "llama_f16", "gemma3", "qwen2", "qwen3", "mixtral",
                                     "qwen2moe", "qwen3moe", "olmo2", "granitemoe", "smollm3",
                                     "gemma2", "phi3", "gpt-oss")),
    [](const auto& test) {
      std::string name = std::get<0>(test.param) + "_" + std::get<1>(test.param);
      std::replace(name.begin(), name.end(), '-', '_');  // gtest takes no other signs
      return name;
    });

// A token outside the window must not change what a sliding-window model says, one inside must.
TEST(SlidingWindow, CutsExactlyAtTheWindow) {
  TinyShape shape = test::tiny_gemma();
  shape.layers = 5;  // all local
  for (const std::string& isa : isas()) {
    const TinyModel m = make_tiny(shape, isa);
    // In the exact form: what is left of a token after 5 layers can vanish in the rounding of the
    // other. Through 5 layers of a window of 24 position 120 sees back to 120 - 5 * 23.
    auto tokens = prompt(121, 8);
    const auto base = Bench(m, {tokens}, 0).step({{0, 0, 121}}, 1)[0];
    tokens[4] ^= 1;
    EXPECT_EQ(Bench(m, {tokens}, 0).step({{0, 0, 121}}, 1)[0], base) << isa;
    tokens[4] ^= 1;
    tokens[5] ^= 1;
    EXPECT_NE(Bench(m, {tokens}, 0).step({{0, 0, 121}}, 1)[0], base) << isa;
  }
}

}  // namespace
}  // namespace wok
