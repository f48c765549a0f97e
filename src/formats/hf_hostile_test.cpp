// Hugging Face folders that are cut off, damaged, contradict themselves or are of a kind that wok
// does not read: each an error that says what is wrong where; never a crash (the sanitizer builds
// run these tests, too).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "tests/support/dense_rows.h"
#include "tests/support/hf_files.h"

namespace wok {
namespace {

namespace fs = std::filesystem;
using test::HfFiles;
using testing::AllOf;
using testing::HasSubstr;

const std::string kFolder = WOK_SOURCE_DIR "/tests/golden/hf/";
const std::string kDown = "model.layers.0.mlp.down_proj.";

class HfHostile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "wok_hf_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Error refusal(const HfFiles& files) {
    files.write(folder_);
    return refusal();
  }
  Error refusal() {
    const auto file = ModelFile::open(folder_);
    EXPECT_FALSE(file.ok()) << "accepted";
    if (file.ok()) return {};
    EXPECT_THAT(file.error().message, HasSubstr(folder_));
    return file.error();
  }

  std::string folder_;
};

// The tensors of bytes that end exactly where the file does, so that a read beyond them is seen.
Status parse_exact(std::span<const uint8_t> bytes) {
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  HfTensors tensors;
  return parse_safetensors({copy.get(), bytes.size()}, "bad.safetensors", tensors);
}

std::string header_refusal(const std::string& header, size_t data_bytes = 8) {
  const auto status =
      parse_exact(HfFiles::safetensors_of(header, std::vector<uint8_t>(data_bytes)));
  EXPECT_FALSE(status.ok()) << header;
  if (status.ok()) return "";
  EXPECT_THAT(status.error().message, HasSubstr("'bad.safetensors'"));
  return status.error().message;
}

TEST(Safetensors, TruncationAnywhereIsAnError) {
  const std::vector<uint8_t> bytes = test::read_bytes(kFolder + "gptq4_v1/model.safetensors");
  ASSERT_TRUE(parse_exact(bytes).ok());
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const size_t length = random() % bytes.size();
    EXPECT_FALSE(parse_exact(std::span(bytes).first(length)).ok()) << length << " bytes";
  }
}

TEST(Safetensors, DamagedHeadersNeverCrash) {
  const std::vector<uint8_t> bytes = test::read_bytes(kFolder + "gptq4_v1/model.safetensors");
  std::mt19937 random(8);
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint8_t> damaged(bytes.begin(), bytes.begin() + 4096);
    damaged[random() % 4096] = static_cast<uint8_t>(random());
    EXPECT_FALSE(parse_exact(damaged).ok());  // its data is cut off at least
  }
}

TEST(Safetensors, RefusesWhatDoesNotFit) {
  const auto one = [](const char* rest) {
    return std::string(R"({"a":{"dtype":"F32",)") + rest + "}}";
  };
  EXPECT_THAT(header_refusal("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(header_refusal("{\"a\":"), HasSubstr("no JSON object"));
  EXPECT_THAT(header_refusal("{\"a\":3}"), HasSubstr("no object"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("'a': unknown dtype"));
  EXPECT_THAT(header_refusal(one(R"("shape":[3],"data_offsets":[0,8])")), HasSubstr("'a'"));
  EXPECT_THAT(header_refusal(one(R"("shape":[-2],"data_offsets":[0,8])")), HasSubstr("dimension"));
  EXPECT_THAT(header_refusal(one(R"("shape":[4611686018427387904,4],"data_offsets":[0,0])")),
              HasSubstr("more elements"));
  EXPECT_THAT(header_refusal(one(R"("shape":[2],"data_offsets":[8,16])")), HasSubstr("outside"));
  EXPECT_THAT(header_refusal(one(R"("shape":[1],"data_offsets":[4,8])")), HasSubstr("hole"));
  EXPECT_THAT(header_refusal(one(R"("shape":[1],"data_offsets":[0,4])")), HasSubstr("byte 4 of 8"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                                 "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
              HasSubstr("overlap"));
  std::vector<uint8_t> long_header(16, 0xff);
  EXPECT_FALSE(parse_exact(long_header).ok());
  EXPECT_FALSE(parse_exact({}).ok());
}

TEST_F(HfHostile, ConfigurationsThatWokDoesNotRun) {
  HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
  const auto with = [&](const char* key, const nlohmann::json& value) {
    HfFiles changed = files;
    changed.config[key] = value;
    return refusal(changed);
  };
  EXPECT_EQ(with("model_type", "falcon_mamba").kind, ErrorKind::kUnsupported);
  EXPECT_THAT(with("model_type", "falcon_mamba").message,
              AllOf(HasSubstr("falcon_mamba"), HasSubstr("llama")));
  EXPECT_THAT(with("hidden_act", "relu").message,
              AllOf(HasSubstr("hidden_act"), HasSubstr("relu")));
  EXPECT_THAT(with("num_hidden_layers", "two").message, HasSubstr("num_hidden_layers"));
  EXPECT_THAT(with("num_hidden_layers", nullptr).message, HasSubstr("num_hidden_layers"));
  EXPECT_THAT(with("rope_scaling", {{"rope_type", "spiral"}, {"factor", 2}}).message,
              HasSubstr("spiral"));
  EXPECT_THAT(with("quantization_config", {{"quant_method", "bitsandbytes"}}).message,
              AllOf(HasSubstr("bitsandbytes"), HasSubstr("gptq, awq, compressed-tensors, fp8")));
  const std::string text = "{\"model_type\": ";
  test::write_bytes(folder_ + "/config.json", text.data(), text.size());
  EXPECT_THAT(refusal().message, HasSubstr("is no JSON"));
  fs::remove(folder_ + "/config.json");
  EXPECT_THAT(refusal().message, HasSubstr("without config.json"));
}

TEST_F(HfHostile, QuantizationsThatContradictTheTensors) {
  const HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
  const auto with = [&](const char* key, const nlohmann::json& value) {
    HfFiles changed = files;
    changed.config["quantization_config"][key] = value;
    const Error error = refusal(changed);
    EXPECT_THAT(error.message, HasSubstr("model.layers.0.")) << key;
    return error.message;
  };
  EXPECT_THAT(with("group_size", 16), HasSubstr("groups of 16"));
  EXPECT_THAT(with("group_size", 0), HasSubstr("group size of 0"));
  EXPECT_THAT(with("group_size", -7), HasSubstr("group size of -7"));
  EXPECT_THAT(with("bits", 8), HasSubstr("at 8 bits"));
  with("quant_method", "awq");
  with("quant_method", "compressed-tensors");
  HfFiles changed = files;
  changed.config["quantization_config"]["bits"] = 5;
  EXPECT_THAT(refusal(changed).message, HasSubstr("5 bits; wok reads 2, 3, 4 and 8"));
  changed = files;
  changed.config.erase("quantization_config");
  EXPECT_THAT(refusal(changed).message, HasSubstr("does not say how"));
  changed = files;
  changed.config["quantization_config"]["checkpoint_format"] = "marlin";
  EXPECT_THAT(refusal(changed).message, HasSubstr("marlin"));
}

TEST_F(HfHostile, TensorsThatAreMissingOrOfAnotherKind) {
  const HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
  for (const char* part : {"qweight", "qzeros", "scales"}) {
    HfFiles changed = files;
    changed.tensors.erase(kDown + part);
    EXPECT_THAT(refusal(changed).message, HasSubstr("mlp.down_proj")) << part;
    changed = files;
    changed.tensors[kDown + part].shape = {1};
    changed.tensors[kDown + part].data.resize(changed.tensors[kDown + part].dtype == "F16" ? 2 : 4);
    EXPECT_THAT(refusal(changed).message, HasSubstr("mlp.down_proj")) << part;
    changed = files;
    changed.tensors[kDown + part].dtype =
        changed.tensors[kDown + part].dtype == "F16" ? "I16" : "F32";
    EXPECT_THAT(refusal(changed).message, HasSubstr("mlp.down_proj")) << part;
  }
  HfFiles changed = files;
  changed.tensors["model.layers.0.mlp.third_proj.weight"] = files.tensors.at("model.norm.weight");
  EXPECT_THAT(refusal(changed).message, HasSubstr("mlp.third_proj"));
  changed = files;
  changed.tensors["model.layers.-1.mlp.up_proj.weight"] = files.tensors.at("model.norm.weight");
  EXPECT_THAT(refusal(changed).message, HasSubstr("model.layers.-1"));
}

TEST_F(HfHostile, GroupIndicesOutOfRange) {
  for (const int32_t bad : {-1, 2, std::numeric_limits<int32_t>::max()}) {
    HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
    files.tensors.at(kDown + "g_idx").set<int32_t>(5, bad);
    EXPECT_THAT(
        refusal(files).message,
        AllOf(HasSubstr("mlp.down_proj"), HasSubstr("g_idx names group " + std::to_string(bad))));
  }
  HfFiles files = HfFiles::read(kFolder + "packed4_act_order");
  files.tensors.at(kDown + "weight_g_idx").set<int32_t>(5, 3);
  EXPECT_THAT(refusal(files).message, HasSubstr("g_idx names group 3"));
}

// Groups of unequal sizes have no order of columns that could be packed: read as they are.
TEST_F(HfHostile, UnequalGroupsStayExact) {
  HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
  files.tensors.at(kDown + "g_idx").set<int32_t>(5, 1);
  files.write(folder_);
  const auto file = ModelFile::open(folder_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const ModelTensor* down = file->find_tensor("blk.0.ffn_down.weight");
  EXPECT_STREQ(down->format->name, "F32");
  const auto before = ModelFile::open(kFolder + "gptq4_v1");
  const std::vector<float> now = test::dense_rows(*down);
  const std::vector<float> then = test::dense_rows(*before->find_tensor("blk.0.ffn_down.weight"));
  for (size_t i = 0; i < now.size(); ++i) {
    if (i % 96 == 5) continue;
    EXPECT_EQ(now[i], then[i]) << i;
  }
  EXPECT_NE(now, then);
}

TEST_F(HfHostile, ScalesThatAreNoNumbers) {
  HfFiles files = HfFiles::read(kFolder + "gptq4_v1");
  files.tensors.at(kDown + "scales").set<uint16_t>(3, 0x7e00);  // NaN
  EXPECT_THAT(refusal(files).message, AllOf(HasSubstr("mlp.down_proj"), HasSubstr("scale")));
  files = HfFiles::read(kFolder + "packed4");
  files.tensors.at(kDown + "weight_scale").set<uint16_t>(3, 0x7c00);  // infinite
  EXPECT_THAT(refusal(files).message, HasSubstr("mlp.down_proj"));
  files = HfFiles::read(kFolder + "fp8_rows");
  files.tensors.at(kDown + "weight_scale_inv").set<uint32_t>(3, 0x7fc00000);
  EXPECT_THAT(refusal(files).message, HasSubstr("mlp.down_proj"));
  files = HfFiles::read(kFolder + "fp8_rows");
  files.tensors.at(kDown + "weight").set<uint8_t>(3, 0x7f);
  EXPECT_THAT(refusal(files).message, AllOf(HasSubstr("mlp.down_proj"), HasSubstr("NaN")));
  files = HfFiles::read(kFolder + "fp8_rows");
  files.tensors.erase(kDown + "weight_scale_inv");
  EXPECT_THAT(refusal(files).message, HasSubstr("without weight_scale"));
}

// One module without its zero points, as llm-compressor's issue 2099 has it.
TEST_F(HfHostile, AsymmetricModuleWithoutZeroPoints) {
  HfFiles files = HfFiles::read(kFolder + "packed4_asymmetric");
  files.tensors.erase(kDown + "weight_zero_point");
  EXPECT_THAT(refusal(files).message,
              AllOf(HasSubstr("mlp.down_proj"), HasSubstr("weight_zero_point")));
}

TEST_F(HfHostile, ShardsMissingOrOutsideTheFolder) {
  fs::copy(kFolder + "bf16", folder_,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const std::string index = folder_ + "/model.safetensors.index.json";
  const std::string second = folder_ + "/model-00002-of-00002.safetensors";
  std::ifstream stream(index);
  const nlohmann::json good = nlohmann::json::parse(stream);
  fs::rename(second, second + ".part");
  EXPECT_THAT(refusal().message, HasSubstr("model-00002-of-00002.safetensors"));
  fs::rename(second + ".part", second);
  const auto with = [&](const nlohmann::json& file) {
    nlohmann::json changed = good;
    changed["weight_map"]["model.norm.weight"] = file;
    const std::string text = changed.dump();
    test::write_bytes(index, text.data(), text.size());
    return refusal().message;
  };
  for (const char* path : {"../model.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    EXPECT_THAT(with(path), HasSubstr("model.norm.weight")) << path;
  }
  EXPECT_THAT(with(5), HasSubstr("model.norm.weight"));
  const std::string other =
      good["weight_map"]["model.norm.weight"] == "model-00001-of-00002.safetensors"
          ? "model-00002-of-00002.safetensors"
          : "model-00001-of-00002.safetensors";
  EXPECT_THAT(with(other), HasSubstr("the index names"));
  test::write_bytes(index, "{}", 2);
  EXPECT_THAT(refusal().message, HasSubstr("weight_map"));
}

// An expression that takes exponential time in some engines; the pattern comes from a file.
TEST_F(HfHostile, ExpressionsThatExplode) {
  HfFiles files = HfFiles::read(kFolder + "packed4");
  files.config["quantization_config"]["config_groups"]["group_0"]["targets"] = {
      "re:(([a-z._0-9]+)+)+#", "re:" + std::string(100000, '('), "re:.*proj"};
  files.write(folder_);
  const auto file = ModelFile::open(folder_);
  EXPECT_TRUE(file.ok()) << file.error().message;
}

}  // namespace
}  // namespace wok
