// Folders quantized from one pass of a text: what other programs would read back, what is kept of a
// run that was stopped, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "kernels/isa.h"
#include "quantizer/hf_pack.h"
#include "quantizer/imatrix.h"
#include "quantizer/quantize_folder.h"
#include "tests/support/dense_rows.h"
#include "tests/support/hf_files.h"

namespace wok {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kSource = WOK_SOURCE_DIR "/tests/golden/hf/bf16";

std::map<std::string, std::vector<uint8_t>> contents(const std::string& folder) {
  std::map<std::string, std::vector<uint8_t>> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    out[entry.path().filename()] = test::read_bytes(entry.path());
  }
  return out;
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "wok_folder_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    temp_ = pattern;
    load(kSource);
  }
  void TearDown() override { fs::remove_all(temp_); }

  void load(const std::string& folder) {
    auto file = ModelFile::open(folder);
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto model = Model::load(std::make_shared<const ModelFile>(std::move(file).value()),
                             *choose_isa("").value().kernels, {.pack_dir = "", .pool = &pool_});
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(model).value();
    job_.model = model_.get();
    job_.folder = folder;
    job_.options.group = 32;
    job_.chunk_tokens = 64;
    job_.text = "a test";
    std::mt19937 random(3);
    for (int i = 0; i < 8 * 64 + 5; ++i) job_.tokens.push_back(static_cast<int32_t>(random() % 32));
  }

  std::string path(const std::string& name) const { return temp_ + "/" + name; }
  Result<FolderReport> run(const std::function<bool(double)>& progress = [](double) {
    return true;
  }) {
    return quantize_folder(job_, pool_, progress);
  }

  ComputePool pool_{2};
  std::unique_ptr<Model> model_;
  FolderJob job_;
  std::string temp_;
};

double mean_output_error(const FolderReport::Method& m) {
  double sum = 0;
  for (const ModuleReport& r : m.modules) sum += r.output_error;
  return sum / static_cast<double>(m.modules.size());
}

TEST_F(Folder, ThreeExportsOfOnePass) {
  job_.outputs = {{FolderMethod::kGptq, path("gptq")},
                  {FolderMethod::kAwq, path("awq")},
                  {FolderMethod::kRound, path("rtn")}};
  job_.imatrix = path("imatrix.gguf");
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->calibration_tokens, 8 * 64);
  ASSERT_EQ(report->methods.size(), 3u);
  for (const auto& method : report->methods) {
    ASSERT_EQ(method.modules.size(), 14u);
    EXPECT_FALSE(fs::exists(method.path + ".part"));
    const auto file = ModelFile::open(method.path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_STREQ(file->find_tensor("blk.1.ffn_down.weight")->format->name, "INT4 (32)");
    EXPECT_STREQ(file->find_tensor("token_embd.weight")->format->name, "BF16");
    // Close to what it was made from; AWQ's columns are scaled, so its matrices are not.
    if (method.method == FolderMethod::kAwq) continue;
    const auto before = test::dense_rows(*model_->file().find_tensor("blk.1.ffn_down.weight"));
    const auto after = test::dense_rows(*file->find_tensor("blk.1.ffn_down.weight"));
    double missed = 0, squares = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      missed += std::pow(before[i] - after[i], 2);
      squares += std::pow(before[i], 2);
    }
    EXPECT_LT(std::sqrt(missed / squares), 0.2);
    EXPECT_GT(missed, 0);
  }
  EXPECT_LT(mean_output_error(report->methods[0]), 0.9 * mean_output_error(report->methods[2]));
  EXPECT_LT(mean_output_error(report->methods[1]), mean_output_error(report->methods[2]));

  const auto importance = ImportanceMatrix::read(job_.imatrix);
  ASSERT_TRUE(importance.ok()) << importance.error().message;
  EXPECT_EQ(importance->size(), 14u);
  const auto down = importance->find("blk.0.ffn_down.weight", 96, 1);
  ASSERT_TRUE(down.ok());
  ASSERT_NE(*down, nullptr);
  EXPECT_GT(**down, 0);
  EXPECT_FALSE(importance->find("blk.0.ffn_down.weight", 64, 1).ok());
  EXPECT_EQ(importance->find("output.weight", 64, 1).value(), nullptr);
}

// AWQ's factors cancel: the scaled model, not yet rounded, is the model. Seen through 8 bits'
// worth of agreement of the whole forward pass with the source's.
TEST_F(Folder, FoldedFactorsCancel) {
  job_.outputs = {{FolderMethod::kAwq, path("awq")}};
  ASSERT_TRUE(run().ok());
  const auto awq = ModelFile::open(path("awq"));
  ASSERT_TRUE(awq.ok());
  const ModelFile& source = model_->file();
  const auto norm = [](const ModelFile& f) {
    return test::dense_rows(*f.find_tensor("blk.0.attn_norm.weight"));
  };
  const auto q = [](const ModelFile& f) {
    return test::dense_rows(*f.find_tensor("blk.0.attn_q.weight"));
  };
  const auto n0 = norm(source), n1 = norm(*awq), q0 = q(source), q1 = q(*awq);
  EXPECT_NE(n0, n1);
  double missed = 0, squares = 0;
  for (size_t i = 0; i < q0.size(); ++i) {
    const size_t c = i % n0.size();
    missed += std::pow(q0[i] * n0[c] - q1[i] * n1[c], 2);
    squares += std::pow(q0[i] * n0[c], 2);
  }
  EXPECT_LT(std::sqrt(missed / squares), 0.15);
}

TEST_F(Folder, AStoppedRunGoesOnWithTheSameBytes) {
  job_.outputs = {{FolderMethod::kGptq, path("whole")}};
  ASSERT_TRUE(run().ok());
  job_.outputs[0].path = path("resumed");
  // Stops within the second layer: the first one is on disk.
  const auto stopped = run([](double share) { return share < 0.6; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_FALSE(fs::exists(path("resumed")));
  EXPECT_TRUE(fs::exists(path("resumed.part/model-00002-of-00003.safetensors")));
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->methods[0].resumed_layers, 1);
  EXPECT_EQ(report->methods[0].modules.size(), 14u);
  EXPECT_EQ(contents(path("resumed")), contents(path("whole")));

  // Other settings begin anew.
  job_.outputs[0].path = path("other");
  ASSERT_FALSE(run([](double share) { return share < 0.6; }).ok());
  job_.options.bits = 3;
  const auto anew = run();
  ASSERT_TRUE(anew.ok()) << anew.error().message;
  EXPECT_EQ(anew->methods[0].resumed_layers, 0);
}

TEST_F(Folder, RefusesWhatItCannotDo) {
  job_.outputs = {{FolderMethod::kGptq, path("out")}};
  fs::create_directory(path("out"));
  EXPECT_THAT(run().error().message, HasSubstr("is there already"));
  job_.outputs[0].path = path("no/such/../place");
  job_.tokens.resize(10);
  EXPECT_THAT(run().error().message, HasSubstr("shorter than a chunk of 64"));
  job_.outputs = {{FolderMethod::kAwq, path("awq")}};
  job_.options.bits = 3;
  EXPECT_THAT(run().error().message, HasSubstr("4 bits, not 3"));
  job_.options = {.group = -1};
  EXPECT_THAT(run().error().message, HasSubstr("whole rows"));
  EXPECT_FALSE(fs::exists(path("awq")));
  load(WOK_SOURCE_DIR "/tests/golden/hf/gptq4_v1");
  EXPECT_THAT(run().error().message, HasSubstr("quantized already"));
  EXPECT_THAT(
      ImportanceMatrix::read(WOK_SOURCE_DIR "/tests/golden/tiny_qwen2.gguf").error().message,
      HasSubstr("no importance matrix"));
}

// Rows of 96 are no multiple of 64: the group falls back for all, and the report says so.
TEST_F(Folder, GroupsThatDoNotDivideFallBack) {
  job_.outputs = {{FolderMethod::kGptq, path("out")}};
  job_.options.group = 128;
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->group, 32);
  std::ifstream stream(path("out/config.json"));
  EXPECT_EQ(nlohmann::json::parse(stream)["quantization_config"]["group_size"], 32);
}

class Packed : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

// What is written is what the reader, which NumPy's goldens hold, makes of it.
TEST_P(Packed, ReadsBackBitForBit) {
  const auto [bits, symmetric, act_order] = GetParam();
  test::HfFiles files = test::HfFiles::read(WOK_SOURCE_DIR "/tests/golden/hf/gptq4_v1");
  std::mt19937 random(9);
  GroupedMatrix m{.rows = 64, .cols = 96, .options = {bits, 32, symmetric}};
  for (int i = 0; i < m.rows * m.cols; ++i) {
    m.codes.push_back(static_cast<uint8_t>(random() % (1u << bits)));
  }
  for (int i = 0; i < m.rows * m.groups(); ++i) {
    m.scales.push_back(static_cast<float>(1 + random() % 500) / 1024);
    m.zeros.push_back(static_cast<uint8_t>(symmetric ? 1u << (bits - 1) : random() % (1u << bits)));
  }
  for (int c = 0; act_order && c < m.cols; ++c) m.group_of.push_back((c * 5 + 1) % 3);
  const std::string down = "model.layers.0.mlp.down_proj";
  // The other modules stay in their own 4 bits: only this one is opened by the new settings.
  auto& config = files.config["quantization_config"];
  config["bits"] = bits;
  config["group_size"] = 32;
  config["sym"] = symmetric;
  for (auto it = files.tensors.begin(); it != files.tensors.end();) {
    const bool quantized = it->first.ends_with("qweight") || it->first.ends_with("qzeros") ||
                           it->first.ends_with("scales") || it->first.ends_with("g_idx");
    it = quantized ? files.tensors.erase(it) : std::next(it);
  }
  for (const SafetensorsEntry& e : pack_gptq(down, m)) {
    files.tensors[e.name] = {e.type, e.shape, e.data};
  }
  const std::string folder = testing::TempDir() + "wok_packed_" + std::to_string(::getpid());
  files.write(folder);
  const auto file = ModelFile::open(folder);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const std::vector<float> back = test::dense_rows(*file->find_tensor("blk.0.ffn_down.weight"));
  for (int32_t r = 0; r < m.rows; ++r) {
    for (int32_t c = 0; c < m.cols; ++c)
      ASSERT_EQ(back[r * m.cols + c], m.at(r, c)) << r << " " << c;
  }
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Gptq, Packed,
                         testing::Combine(testing::Values(2, 3, 4, 8), testing::Bool(),
                                          testing::Bool()));

}  // namespace
}  // namespace wok
