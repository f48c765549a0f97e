#include "quantizer/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/edited_model.h"

namespace wok {
namespace {

namespace fs = std::filesystem;
using test::EditedModel;
using testing::HasSubstr;

class Quantize : public testing::Test {
 protected:
  Quantize() : folder_(fs::temp_directory_path() / ("wok_quantize_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Quantize() override { fs::remove_all(folder_); }

  static test::TinyShape shape_of(const char* architecture) {
    test::TinyShape shape = test::tiny_shape(architecture);
    shape.type = "F32";
    shape.embedding = 256;  // rows that K-quants take; the experts' of 32 they do not
    return shape;
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  Result<QuantizeReport> run(const std::vector<uint8_t>& bytes, const char* method) {
    const auto file = parse_gguf(bytes, "source.gguf");
    EXPECT_TRUE(file.ok());
    ComputePool pool(2);
    return quantize_file(*file, path("out.gguf"), *find_mixture(method), nullptr, pool,
                         [](uint64_t, uint64_t) { return true; });
  }
  bool nothing_left() const { return fs::is_empty(folder_); }

  fs::path folder_;
};

TEST_F(Quantize, WritesAModelThatLoadsWithAllThatItSaidOfItself) {
  for (const char* architecture : {"llama", "qwen3moe"}) {
    const std::vector<uint8_t> source = test::TinyWriter(shape_of(architecture), 1).bytes();
    const auto report = run(source, "q4_k_m");
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->was_quantized);
    EXPECT_LT(report->bytes_after, report->bytes_before / 4);
    const auto before = parse_gguf(source, "source.gguf");
    const auto after = ModelFile::open(path("out.gguf"));
    ASSERT_TRUE(after.ok()) << after.error().message;
    ASSERT_EQ(after->tensors().size(), before->tensors().size());
    EXPECT_EQ(**after->get_int("general.file_type"), 15);
    EXPECT_EQ(*after->get_strings("tokenizer.ggml.tokens"),
              *before->get_strings("tokenizer.ggml.tokens"));
    for (const ModelKey& key : before->keys())
      EXPECT_NE(after->find(key.name), nullptr) << key.name;
    for (size_t i = 0; i < after->tensors().size(); ++i) {
      const ModelTensor& from = before->tensors()[i];
      const ModelTensor& to = after->tensors()[i];
      EXPECT_EQ(from.name, to.name);
      EXPECT_EQ(std::vector<int64_t>(from.shape, from.shape + 4),
                std::vector<int64_t>(to.shape, to.shape + 4));
      const QuantizedTensor& said = report->tensors[i];
      EXPECT_EQ(said.to, to.format);
      std::vector<float> x(from.shape[0]), y(from.shape[0]);
      from.format->dequantize(from.data.data(), x.data(), from.shape[0]);
      to.format->dequantize(to.data.data(), y.data(), to.shape[0]);
      if (said.kept) {
        EXPECT_EQ(x, y) << to.name;
      } else {
        EXPECT_GT(said.error, 0) << to.name;
        EXPECT_LT(said.error, 0.1) << to.name;
      }
    }
    ComputePool pool(1);
    const auto model = Model::load(
        std::make_shared<const ModelFile>(std::move(*ModelFile::open(path("out.gguf")))),
        reference_kernels(), {"", &pool});
    EXPECT_TRUE(model.ok()) << model.error().message;
  }
}

TEST_F(Quantize, ThreadsDoNotChangeAByte) {
  const std::vector<uint8_t> source = test::TinyWriter(shape_of("llama"), 1).bytes();
  const auto file = parse_gguf(source, "source.gguf");
  std::string first;
  for (const int32_t threads : {1, 3}) {
    ComputePool pool(threads);
    ASSERT_TRUE(quantize_file(*file, path("out.gguf"), *find_mixture("q3_k_m"), nullptr, pool,
                              [](uint64_t, uint64_t) { return true; })
                    .ok());
    std::ifstream in(path("out.gguf"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

TEST_F(Quantize, LeavesNothingHalfWritten) {
  EditedModel broken(shape_of("llama"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto& tensor = broken.tensor("blk.1.ffn_up.weight");
  std::memcpy(tensor.data.data() + 5 * 256 * 4, &nan, sizeof(nan));
  const auto report = run(broken.bytes(), "q4_0");
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message,
              HasSubstr("row 5 of tensor 'blk.1.ffn_up.weight' holds values that are no numbers"));
  EXPECT_TRUE(nothing_left());

  const std::vector<uint8_t> source = test::TinyWriter(shape_of("llama"), 1).bytes();
  const auto file = parse_gguf(source, "source.gguf");
  ComputePool pool(1);
  const auto stopped = quantize_file(*file, path("out.gguf"), *find_mixture("q4_0"), nullptr, pool,
                                     [](uint64_t done, uint64_t of) { return done < of / 2; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(nothing_left());

  const auto nowhere = quantize_file(*file, path("no/such/folder.gguf"), *find_mixture("q4_0"),
                                     nullptr, pool, [](uint64_t, uint64_t) { return true; });
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kIo);
}

TEST_F(Quantize, DoesNotWriteOverWhatItReads) {
  const std::vector<uint8_t> source = test::TinyWriter(shape_of("llama"), 1).bytes();
  std::ofstream(path("in.gguf"), std::ios::binary)
      .write(reinterpret_cast<const char*>(source.data()),
             static_cast<std::streamsize>(source.size()));
  const auto file = ModelFile::open(path("in.gguf"));
  ComputePool pool(1);
  const auto report = quantize_file(*file, path("in.gguf"), *find_mixture("q8_0"), nullptr, pool,
                                    [](uint64_t, uint64_t) { return true; });
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("cannot be written while it is read"));
  EXPECT_EQ(fs::file_size(path("in.gguf")), source.size());
}

// As llama.cpp's quantizer lays out a model of 16 layers.
TEST(Mixtures, MoreBitsWhereLlamaCppPutsThem) {
  DecoderConfig config;
  config.layers = 16;
  config.heads = 32;
  config.kv_heads = 8;
  const auto format_of = [&](const char* method, const std::string& name, int64_t cols = 2048) {
    ModelTensor tensor;
    tensor.name = name;
    tensor.dims = 2;
    tensor.shape[0] = cols;
    tensor.format = &kWeightFormat_f16;
    return std::string(plan_tensor(*find_mixture(method), tensor, config, true).format->name);
  };
  std::vector<int> wide;
  for (int i = 0; i < 16; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    if (format_of("q4_k_m", layer + "ffn_down.weight") == "Q6_K") wide.push_back(i);
    EXPECT_EQ(format_of("q4_k_m", layer + "ffn_down.weight"),
              format_of("q4_k_m", layer + "attn_v.weight"));
  }
  EXPECT_EQ(wide, (std::vector<int>{0, 1, 4, 7, 10, 13, 14, 15}));
  EXPECT_EQ(format_of("q4_k_m", "token_embd.weight"), "Q6_K");
  EXPECT_EQ(format_of("q4_k_m", "blk.3.attn_q.weight"), "Q4_K");
  EXPECT_EQ(format_of("q8_0", "token_embd.weight"), "Q8_0");
  EXPECT_EQ(format_of("q4_0", "token_embd.weight"), "Q6_K");
  EXPECT_EQ(format_of("q2_k", "blk.3.attn_v.weight"), "Q4_K");
  EXPECT_EQ(format_of("q2_k", "blk.3.attn_output.weight"), "Q3_K");
  EXPECT_EQ(format_of("q3_k_m", "blk.1.attn_v.weight"), "Q5_K");
  EXPECT_EQ(format_of("q3_k_m", "blk.2.attn_v.weight"), "Q4_K");
  // Rows that K-quants do not fit (SmolLM2's 576), and rows that nothing of 32 fits.
  EXPECT_EQ(format_of("q4_k_m", "blk.3.attn_q.weight", 576), "Q5_0");
  EXPECT_EQ(format_of("q4_k_m", "token_embd.weight", 576), "Q8_0");
  EXPECT_EQ(format_of("q2_k", "blk.3.ffn_up.weight", 576), "Q4_0");
  EXPECT_EQ(format_of("iq4_xs", "blk.3.ffn_up.weight", 576), "IQ4_NL");
  EXPECT_EQ(format_of("q4_k_m", "blk.3.attn_q.weight", 40), "F16");
  // What keeps its format.
  EXPECT_EQ(format_of("q4_k_m", "blk.3.ffn_gate_inp.weight"), "F16");
  EXPECT_EQ(format_of("q4_k_m", "blk.3.attn_q_norm.weight"), "F16");
  EXPECT_EQ(format_of("q4_k_m", "blk.3.attn_q.bias"), "F16");
  EXPECT_EQ(find_mixture("awq"), nullptr);
}

}  // namespace
}  // namespace wok
