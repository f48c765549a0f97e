// Model files that lie about themselves, key by key and tensor by tensor: an error that names what
// is wrong, before anything is computed with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "models/model.h"
#include "models/read_info.h"
#include "tests/support/edited_model.h"

namespace wok {
namespace {

using test::EditedModel;
using testing::AllOf;
using testing::HasSubstr;

Status load(const std::vector<uint8_t>& bytes) {
  WOK_TRY(file, parse_gguf(bytes, "bad.gguf"));
  ComputePool pool(1);
  WOK_TRY(model, Model::load(std::make_shared<const ModelFile>(std::move(file)),
                             reference_kernels(), {"", &pool}));
  return Ok{};
}

// One of each architecture.
std::vector<test::TinyShape> every_shape() {
  std::vector<test::TinyShape> shapes;
  for (const Architecture* a : architectures()) shapes.push_back(test::tiny_shape(a->name));
  return shapes;
}

void expect_loads(const EditedModel& model, const std::string& what) {
  const Status status = load(model.bytes());
  EXPECT_TRUE(status.ok()) << what << ": " << (status.ok() ? "" : status.error().message);
}

void expect_refused(const EditedModel& model, ErrorKind kind, const std::string& reason) {
  const Status status = load(model.bytes());
  ASSERT_FALSE(status.ok()) << "loaded; expected: " << reason;
  EXPECT_EQ(status.error().kind, kind) << status.error().message;
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("'bad.gguf'"), HasSubstr(reason)));
}

TEST(Load, TheUndamagedModelsLoad) {
  for (const auto& shape : every_shape()) {
    expect_loads(EditedModel(shape), shape.architecture);
  }
}

TEST(Load, MissingKeysOneByOne) {
  const std::vector<std::string> required = {
      "general.architecture",      "llama.block_count",          "llama.embedding_length",
      "llama.feed_forward_length", "llama.attention.head_count", "llama.context_length"};
  for (const std::string& key : EditedModel().keys()) {
    EditedModel model;
    model.drop(key);
    if (std::count(required.begin(), required.end(), key) > 0) {
      expect_refused(model, ErrorKind::kInvalid, "has no key '" + key + "'");
    } else if (key == "llama.attention.head_count_kv") {
      // Absent means as many as query heads, which these tensors are not.
      expect_refused(model, ErrorKind::kInvalid, "tensor 'blk.0.attn_k.weight' is 64 x 32");
    } else {
      expect_loads(model, "without " + key);
    }
  }
}

TEST(Load, KeysOfAnotherTypeOneByOne) {
  for (const auto& shape : every_shape()) {
    for (const std::string& key : EditedModel(shape).keys()) {
      EditedModel model(shape);
      if (key == "general.architecture") {
        model.whole(key, 1);
      } else {
        model.text(key, "16");
      }
      expect_refused(model, ErrorKind::kInvalid, "key '" + key + "' is not a");
    }
  }
}

TEST(Load, AbsurdNumbersOneByOne) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  const std::vector<std::pair<std::string, std::vector<int64_t>>> cases = {
      {"block_count", {0, -1, 1025, kHuge, INT64_MAX}},
      {"embedding_length", {0, -64, 15, kHuge, INT64_MIN}},
      {"feed_forward_length", {0, -1, kHuge}},
      {"attention.head_count", {0, -4, 1025, kHuge}},
      {"attention.head_count_kv", {0, -1, 3, 8, kHuge}},
      {"attention.key_length", {0, 8, 513, kHuge}},
      {"attention.value_length", {0, 513, kHuge}},
      {"context_length", {0, -1, kHuge}},
      {"rope.dimension_count", {0, 1, 18, -2, kHuge}},
  };
  for (const auto& [name, values] : cases) {
    for (const int64_t value : values) {
      EditedModel model;
      model.whole("llama." + name, value);
      expect_refused(model, ErrorKind::kInvalid,
                     "llama." + name + " is " + std::to_string(value) + ", expected ");
    }
  }
}

// Numbers that are sane by themselves but not what the tensors are.
TEST(Load, KeysThatContradictTheTensors) {
  const std::vector<std::pair<std::string, int64_t>> cases = {{"block_count", 3},
                                                              {"embedding_length", 32},
                                                              {"feed_forward_length", 64},
                                                              {"attention.head_count", 2},
                                                              {"attention.head_count_kv", 1}};
  for (const auto& [name, value] : cases) {
    EditedModel model;
    model.whole("llama." + name, value);
    expect_refused(model, ErrorKind::kInvalid, "tensor '");
  }
}

TEST(Load, HeadSizesWokDoesNotRun) {
  EditedModel model;
  model.whole("llama.attention.key_length", 24);
  model.whole("llama.attention.value_length", 24);
  expect_refused(model, ErrorKind::kUnsupported, "heads of 24 (keys) and 24 (values)");
  model.whole("llama.attention.key_length", 32);
  expect_refused(model, ErrorKind::kUnsupported, "heads of 32 (keys) and 24 (values)");
  EditedModel odd;
  odd.whole("llama.rope.dimension_count", 15);
  expect_refused(odd, ErrorKind::kUnsupported, "rotating 15");
}

TEST(Load, KvHeadsOfEachLayer) {
  EditedModel model;
  model.wholes("llama.attention.head_count_kv", {2, 2});
  expect_loads(model, "equal counts");
  model.wholes("llama.attention.head_count_kv", {2, 1});
  expect_refused(model, ErrorKind::kUnsupported, "differs between layers");
  model.wholes("llama.attention.head_count_kv", {3, 3});
  expect_refused(model, ErrorKind::kInvalid, "expected a divisor of the 4 heads");
}

TEST(Load, FloatsThatAreNoNumbersOrOutOfRange) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string name : {"attention.layer_norm_rms_epsilon", "rope.freq_base"}) {
    for (const double value : {kNan, kInf, -kInf}) {
      EditedModel model;
      model.real("llama." + name, value);
      expect_refused(model, ErrorKind::kInvalid, "'llama." + name + "' is not a finite number");
    }
    for (const double value : {-1.0, 2e12}) {
      EditedModel model;
      model.real("llama." + name, value);
      expect_refused(model, ErrorKind::kInvalid, "llama." + name + " is ");
    }
  }
}

TEST(Load, RopeScaling) {
  EditedModel model;
  model.text("llama.rope.scaling.type", "dynamic");
  expect_refused(model, ErrorKind::kUnsupported, "RoPE scaling 'dynamic' is not supported");
  model.text("llama.rope.scaling.type", "longrope");
  expect_refused(model, ErrorKind::kInvalid,
                 "has no key 'llama.rope.scaling.original_context_length'");
  model.text("llama.rope.scaling.type", "none");
  expect_loads(model, "no scaling");
  model.text("llama.rope.scaling.type", "linear");
  expect_refused(model, ErrorKind::kInvalid, "llama.rope.scaling.factor is missing");
  for (const double factor : {0.0, -2.0, 1e9}) {
    model.real("llama.rope.scaling.factor", factor);
    expect_refused(model, ErrorKind::kInvalid, "factor is missing or out of range");
  }
  model.real("llama.rope.scaling.factor", std::numeric_limits<double>::quiet_NaN());
  expect_refused(model, ErrorKind::kInvalid, "factor' is not a finite number");
  model.real("llama.rope.scaling.factor", 8);
  expect_loads(model, "linear scaling");
  model.text("llama.rope.scaling.type", "yarn");
  expect_refused(model, ErrorKind::kInvalid,
                 "has no key 'llama.rope.scaling.original_context_length'");
  for (const int64_t tokens : {int64_t{0}, int64_t{-4096}, int64_t{1} << 40}) {
    model.whole("llama.rope.scaling.original_context_length", tokens);
    expect_refused(model, ErrorKind::kInvalid, "original_context_length is ");
  }
  model.whole("llama.rope.scaling.original_context_length", 512);
  expect_loads(model, "YaRN");
  model.real("llama.rope.scaling.yarn_beta_fast", 16);
  expect_refused(model, ErrorKind::kUnsupported, "yarn_beta_fast is 16; wok runs YaRN with 32");
}

TEST(Load, RopeFactors) {
  EditedModel good;
  good.add_vector("rope_freqs.weight", {1, 1, 1, 1, 2, 4, 8, 8});
  expect_loads(good, "rope factors");
  for (const float wrong : {0.0f, -1.0f, 1e10f, std::numeric_limits<float>::quiet_NaN()}) {
    EditedModel model;
    model.add_vector("rope_freqs.weight", {1, 1, 1, 1, 2, wrong, 8, 8});
    expect_refused(model, ErrorKind::kInvalid, "rope_freqs.weight holds ");
  }
  EditedModel model;
  model.add_vector("rope_freqs.weight", {1, 1, 1});
  expect_refused(model, ErrorKind::kInvalid, "tensor 'rope_freqs.weight' is 3 x 1");
}

// The shape's model was trained with 64 tokens and takes 4096.
TEST(Load, LongRopeFollowsTheServedContext) {
  EditedModel edited(test::tiny_shape("phi3"));
  const auto set_factors = [&](const std::string& name, const std::vector<float>& values) {
    std::erase_if(edited.tensors, [&](const auto& t) { return t.info.name == name; });
    edited.add_vector(name, values);
  };
  set_factors("rope_factors_long.weight", {4, 5, 6, 7});
  set_factors("rope_factors_short.weight", {1, 2, 3, 1});
  const std::vector<uint8_t> bytes = edited.bytes();
  for (const auto& [served, first] : {std::pair{0, 4.0f}, {4096, 4.0f}, {65, 4.0f}, {64, 1.0f}}) {
    ComputePool pool(1);
    const auto model =
        Model::load(std::make_shared<const ModelFile>(parse_gguf(bytes, "long.gguf").value()),
                    reference_kernels(), {.pack_dir = "", .pool = &pool, .context_tokens = served});
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->weights().rope_factors.at(0), first) << served;
    EXPECT_EQ((*model)->config().rope_magnitude, 1.25f);
  }
  set_factors("rope_factors_short.weight", {1, 2, 0, 1});
  expect_refused(edited, ErrorKind::kInvalid, "rope_factors_short.weight holds 0");
}

TEST(Load, ArchitecturesWokDoesNotKnowAreToldWhichItDoes) {
  for (const char* name : {"mamba", "t5", "", "LLAMA"}) {
    EditedModel model;
    model.text("general.architecture", name);
    expect_refused(model, ErrorKind::kUnsupported,
                   "architecture '" + std::string(name) +
                       "'; wok runs llama, gemma, gemma2, gemma3, qwen2, qwen2moe, ");
  }
}

TEST(Load, DeviationsWokDoesNotRun) {
  EditedModel windowed(test::tiny_shape("olmo2"));
  windowed.whole("olmo2.attention.sliding_window", 4096);
  expect_refused(windowed, ErrorKind::kUnsupported, "layers with a sliding window (OLMo 3)");
  EditedModel scaled;
  scaled.add_vector("blk.0.ffn_up.scale", {0.5f});
  expect_refused(scaled, ErrorKind::kUnsupported, "scales whole tensors ('blk.0.ffn_up.scale')");
  EditedModel embedder;
  embedder.whole("llama.pooling_type", 3);
  expect_refused(embedder, ErrorKind::kUnsupported, "llama.pooling_type is 3");
  embedder.whole("llama.pooling_type", 0);
  expect_loads(embedder, "no pooling");
  for (const std::string cap : {"attn", "final"}) {
    EditedModel capped(test::tiny_shape("gemma2"));
    capped.real("gemma2." + cap + "_logit_softcapping", -30);
    expect_refused(capped, ErrorKind::kInvalid, cap + "_logit_softcapping is -30, expected 0 to");
  }
  for (const int64_t window : {int64_t{-1}, int64_t{1} << 31}) {
    EditedModel model(test::tiny_gemma());
    model.whole("gemma3.attention.sliding_window", window);
    expect_refused(model, ErrorKind::kInvalid, "sliding_window is out of range");
  }
}

TEST(Load, ExpertsWithinBounds) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> absurd = {
      {"expert_count", {-1, 4097, int64_t{1} << 31}},
      {"expert_used_count", {0, -1, 7, int64_t{1} << 31}},
      {"expert_feed_forward_length", {0, -32, int64_t{1} << 31}}};
  for (const auto& [name, values] : absurd) {
    for (const int64_t value : values) {
      EditedModel model(test::tiny_shape("qwen3moe"));
      model.whole("qwen3moe." + name, value);
      expect_refused(model, ErrorKind::kInvalid,
                     "qwen3moe." + name + " is " + std::to_string(value) + ", expected ");
    }
  }
  EditedModel wide(test::tiny_shape("qwen3moe"));
  wide.whole("qwen3moe.expert_feed_forward_length", 40);
  expect_refused(wide, ErrorKind::kUnsupported, "experts of 64 by 40; wok runs multiples of 16");
  EditedModel fewer(test::tiny_shape("qwen3moe"));
  fewer.whole("qwen3moe.expert_count", 5);
  expect_refused(fewer, ErrorKind::kInvalid, "tensor 'blk.0.ffn_gate_inp.weight' is 64 x 6");
  EditedModel without;  // a llama that claims to have experts
  without.whole("llama.expert_count", 8);
  expect_refused(without, ErrorKind::kInvalid, "has no key 'llama.expert_used_count'");
  for (const char* key : {"expert_gating_func", "expert_group_count"}) {
    EditedModel model(test::tiny_shape("qwen3moe"));
    model.whole(std::string("qwen3moe.") + key, 2);
    expect_refused(model, ErrorKind::kUnsupported, "routes its experts in a way");
  }
  for (const char* arch : {"qwen2moe", "granitemoe"}) {
    EditedModel model(test::tiny_shape(arch));
    model.whole(std::string(arch) + ".expert_shared_feed_forward_length", -5);
    expect_refused(model, ErrorKind::kInvalid,
                   std::string(arch) + ".expert_shared_feed_forward_length is -5, expected 0 to ");
  }
  EditedModel granite(test::tiny_shape("granite"));
  granite.real("granite.residual_scale", -1);
  expect_refused(granite, ErrorKind::kInvalid, "granite.residual_scale is -1");
}

TEST(Load, MissingTensorsOneByOne) {
  for (const auto& shape : every_shape()) {
    const EditedModel whole(shape);
    for (size_t i = 0; i < whole.tensors.size(); ++i) {
      EditedModel model = whole;
      model.tensors.erase(model.tensors.begin() + static_cast<std::ptrdiff_t>(i));
      expect_refused(model, ErrorKind::kInvalid,
                     "has no tensor '" + whole.tensors[i].info.name + "'");
    }
  }
}

TEST(Load, WrongShapesOneByOne) {
  for (const auto& shape : every_shape()) {
    const EditedModel whole(shape);
    for (size_t i = 0; i < whole.tensors.size(); ++i) {
      EditedModel model = whole;
      auto& [info, data] = model.tensors[i];
      if (info.name == "token_embd.weight") continue;  // its rows are the vocabulary
      const size_t row = info.shape.size() == 1 ? sizeof(float) : data.size() / info.shape.back();
      ++info.shape.back();
      data.resize(data.size() + row);
      expect_refused(model, ErrorKind::kInvalid, "tensor '" + info.name + "' is ");
    }
  }
  EditedModel folded;
  folded.tensor("token_embd.weight").info.shape = {64, 80, 2};
  expect_refused(folded, ErrorKind::kInvalid, "tensor 'token_embd.weight' is 64 x 160");
}

TEST(Load, TypesWokDoesNotReadAreNamed) {
  const EditedModel whole;
  for (const auto& [info, data] : whole.tensors) {
    EditedModel model = whole;
    model.tensor(info.name).info.type = 15;
    expect_refused(model, ErrorKind::kUnsupported,
                   "tensor '" + info.name + "' is of type Q8_K; wok reads F32, F16, BF16");
  }
  EditedModel model;
  model.tensor("blk.1.ffn_up.weight").info.type = 123456;
  expect_refused(model, ErrorKind::kUnsupported, "is of type type 123456; wok reads");
}

TEST(Load, BiasesAreNotDroppedSilently) {
  EditedModel model;
  model.add_vector("blk.0.attn_q.bias", std::vector<float>(64));
  expect_refused(model, ErrorKind::kUnsupported, "has biases ('blk.0.attn_q.bias')");
  EditedModel other(test::tiny_shape("qwen2"));
  other.add_vector("blk.0.attn_output.bias", std::vector<float>(64));
  expect_refused(other, ErrorKind::kUnsupported, "has biases ('blk.0.attn_output.bias')");
}

TEST(Load, AVocabularyWithinBounds) {
  EditedModel model;
  auto& embedding = model.tensor("token_embd.weight");
  embedding.info.type = 123456;  // no data needed to claim a size
  embedding.info.shape[1] = (1 << 22) + 1;
  expect_refused(model, ErrorKind::kInvalid, "a vocabulary of 4194305 tokens");
}

// Whatever a flipped bit of the header makes of the file, loading ends in an error or in a model
// whose numbers fit its tensors (the sanitizers watch the rest).
TEST(Load, FlippedHeaderBits) {
  test::TinyShape shape;
  shape.layers = 1;
  shape.type = "Q8_0";
  const std::vector<uint8_t> whole = EditedModel(shape).bytes();
  const auto file = parse_gguf(whole, "tiny.gguf");
  const auto header = static_cast<size_t>(file->tensors()[0].data.data() - whole.data());
  std::mt19937 random(3);
  int loaded = 0, refused = 0;
  for (size_t at = 24; at < header; ++at) {
    std::vector<uint8_t> bytes = whole;
    bytes[at] ^= static_cast<uint8_t>(1 << random() % 8);
    ++(load(bytes).ok() ? loaded : refused);
    const auto damaged = parse_gguf(bytes, "bad.gguf");
    if (!damaged.ok()) continue;
    const auto info = read_model_info(*damaged);
    if (info.ok()) {
      EXPECT_LE(info->layers, 1024) << at;
    }
  }
  EXPECT_GT(loaded, 10);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace wok
