// Every way in which Hugging Face folders store weights: the numbers that NumPy, and for its own
// formats the package compressed-tensors, makes of the same bytes (tools/golden/hf_fixtures.py).
#include <gtest/gtest.h>
#include <xxhash.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/model_file.h"
#include "tests/support/dense_rows.h"

namespace wok {
namespace {

const std::string kFolder = WOK_SOURCE_DIR "/tests/golden/hf/";

nlohmann::json read_json(const std::string& name) {
  std::ifstream stream(kFolder + name);
  return nlohmann::json::parse(stream);
}

std::vector<std::string> folders() {
  std::vector<std::string> names;
  const nlohmann::json all = read_json("digests.json");
  for (const auto& [name, digests] : all.items()) names.push_back(name);
  return names;
}

// As Python prints it. The sign of a zero does not count.
std::string digest(std::vector<float> weights) {
  for (float& w : weights) w += 0.0f;
  char text[17];
  std::snprintf(
      text, sizeof(text), "%016llx",
      static_cast<unsigned long long>(XXH3_64bits(weights.data(), weights.size() * sizeof(float))));
  return text;
}

class HfGolden : public testing::TestWithParam<std::string> {};

TEST_P(HfGolden, WeightsAreThoseOfTheIndependentReader) {
  const auto file = ModelFile::open(kFolder + GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const nlohmann::json wanted = read_json("digests.json")[GetParam()];
  ASSERT_EQ(wanted.size() % 7, 0u);
  ASSERT_FALSE(wanted.empty());
  for (const auto& [name, want] : wanted.items()) {
    const ModelTensor* tensor = file->find_tensor(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(digest(test::dense_rows(*tensor)), want) << name << " as " << tensor->format->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, HfGolden, testing::ValuesIn(folders()),
                         [](const auto& test) { return test.param; });

const ModelTensor* tensor_of(const ModelFile& file, const char* name) {
  const ModelTensor* tensor = file.find_tensor(name);
  EXPECT_NE(tensor, nullptr) << name;
  return tensor;
}

// The bytes decide how fast a model is: what could stay packed does.
TEST(HfFolder, KeepsWeightsAtTheirBits) {
  const auto format = [](const char* folder) {
    const auto file = ModelFile::open(kFolder + folder);
    EXPECT_TRUE(file.ok()) << folder;
    return std::string(tensor_of(*file, "blk.0.attn_q.weight")->format->name);
  };
  EXPECT_EQ(format("bf16"), "BF16");
  for (const char* whole_rows : {"gptq4_v1", "gptq4_asymmetric", "gptq4_row", "gptq3", "packed4"}) {
    EXPECT_EQ(format(whole_rows), "INT4") << whole_rows;
  }
  for (const char* small_groups : {"gptq4_act_order", "awq", "packed4_act_order"}) {
    EXPECT_EQ(format(small_groups), "INT4 (32)") << small_groups;
  }
  EXPECT_EQ(format("gptq2"), "INT2");
  for (const char* bytes : {"gptq8", "packed8", "int8"}) EXPECT_EQ(format(bytes), "INT8") << bytes;
}

// The version that a checkpoint claims may be the wrong one (vLLM's issue 38966); the zero points
// are believed.
TEST(HfFolder, ThreeFormsOfTheSameZeroPointsAreTheSameWeights) {
  const nlohmann::json digests = read_json("digests.json");
  EXPECT_EQ(digests["gptq4_v1"], digests["gptq4_v2"]);
  EXPECT_EQ(digests["gptq4_v1"], digests["gptq4_mislabelled"]);
}

TEST(HfFolder, ModulesWithAndWithoutQuantizationMix) {
  const auto file = ModelFile::open(kFolder + "mixed");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_STREQ(tensor_of(*file, "blk.0.attn_q.weight")->format->name, "BF16");
  EXPECT_STREQ(tensor_of(*file, "blk.0.attn_v.weight")->format->name, "INT4 (32)");
  EXPECT_STREQ(tensor_of(*file, "blk.0.ffn_gate.weight")->format->name, "INT4 (32)");
  EXPECT_STREQ(tensor_of(*file, "blk.0.ffn_up.weight")->format->name, "BF16");
}

TEST(HfFolder, SpeaksGgufsKeys) {
  const auto file = ModelFile::open(kFolder + "bf16/");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_FALSE(file->is_gguf());
  EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
  EXPECT_EQ(file->get_string("general.name").value(), "bf16");
  EXPECT_EQ(file->get_int("llama.embedding_length").value(), 64);
  EXPECT_EQ(file->get_int("llama.attention.head_count_kv").value(), 1);
  EXPECT_EQ(file->get_float("llama.rope.freq_base").value(), 10000);
  EXPECT_EQ(file->tensors().size(), 20u);
  EXPECT_EQ(file->find_tensor("output.weight"), nullptr);  // tied
}

}  // namespace
}  // namespace wok
