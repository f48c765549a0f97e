// GPT-OSS's fused experts: which rows, which nibbles, which inputs come first.
#include "formats/hf_gpt_oss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace wok {
namespace {

using testing::HasSubstr;

constexpr const char* kPrefix = "model.layers.3.mlp.experts.";

HfTensor tensor(HfType type, std::vector<int64_t> shape, const void* data, size_t bytes) {
  HfTensor out;
  out.type = type;
  out.shape = std::move(shape);
  out.data = {static_cast<const uint8_t*>(data), bytes};
  return out;
}

HfTensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return tensor(HfType::kF32, std::move(shape), values.data(), values.size() * sizeof(float));
}

std::vector<float> row(const HfMatrix& m, int64_t index) {
  std::vector<uint8_t> bytes(static_cast<size_t>(m.format->row_bytes(m.cols)));
  m.source->read_rows(index, 1, bytes.data());
  std::vector<float> out(static_cast<size_t>(m.cols));
  m.format->dequantize(bytes.data(), out.data(), m.cols);
  return out;
}

// Two experts of two outputs: rows are gate, up, gate, up of the first, then of the second.
TEST(HfGptOss, Mxfp4RowsAlternateAndNibblesAreNeighbours) {
  constexpr int64_t kRows = 8;
  std::vector<uint8_t> blocks(kRows * 16), scales(kRows, 127);
  for (int64_t r = 0; r < kRows; ++r) blocks[r * 16] = static_cast<uint8_t>(r << 4 | 2);
  blocks[5 * 16 + 9] = 0x10 | 0x0f;  // elements 18 (-6) and 19 (0.5)
  scales[5] = 128;                   // twice as large
  HfTensors all;
  const std::string name = std::string(kPrefix) + "gate_up_proj_";
  all[name + "blocks"] = tensor(HfType::kU8, {2, 4, 1, 16}, blocks.data(), blocks.size());
  EXPECT_THAT(read_gpt_oss_tensor(name + "blocks", all, "f").error().message,
              HasSubstr("gate_up_proj_scales' beside it"));
  all[name + "scales"] = tensor(HfType::kU8, {2, 4, 1}, scales.data(), scales.size());
  EXPECT_TRUE(read_gpt_oss_tensor(name + "scales", all, "f")->empty());
  const auto made = read_gpt_oss_tensor(name + "blocks", all, "f").value();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].name, "blk.3.ffn_gate_exps.weight");
  EXPECT_EQ(made[1].name, "blk.3.ffn_up_exps.weight");
  EXPECT_EQ(made[1].matrix.rows, 4);
  EXPECT_EQ(made[1].matrix.cols, 32);
  // Up's row 2 is the second expert's first: row 5 of the file, of codes 2, 5, …, f, 1.
  const std::vector<float> up = row(made[1].matrix, 2);
  EXPECT_EQ(up[0], 2.0f);
  EXPECT_EQ(up[1], 6.0f);
  EXPECT_EQ(up[18], -12.0f);
  EXPECT_EQ(up[19], 1.0f);
  EXPECT_EQ(row(made[0].matrix, 3)[1], 4.0f);  // row 6: code 6
}

TEST(HfGptOss, FloatExpertsHaveInputsBeforeOutputs) {
  // [2 experts, 3 inputs, 4 outputs]
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  HfTensors all;
  const std::string name = std::string(kPrefix) + "gate_up_proj";
  all[name] = floats({2, 3, 4}, values);
  all[std::string(kPrefix) + "down_proj"] = floats({2, 3, 4}, values);
  const auto made = read_gpt_oss_tensor(name, all, "f").value();
  EXPECT_EQ(row(made[0].matrix, 1), (std::vector<float>{2, 6, 10}));
  EXPECT_EQ(row(made[1].matrix, 2), (std::vector<float>{13, 17, 21}));
  const auto down = read_gpt_oss_tensor(std::string(kPrefix) + "down_proj", all, "f").value();
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(row(down[0].matrix, 5), (std::vector<float>{13, 17, 21}));
}

TEST(HfGptOss, BiasesAndSinks) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  HfTensors all;
  const std::string name = std::string(kPrefix) + "gate_up_proj_bias";
  all[name] = floats({2, 4}, values);
  const auto made = read_gpt_oss_tensor(name, all, "f").value();
  EXPECT_EQ(made[1].name, "blk.3.ffn_up_exps.bias");
  EXPECT_EQ(row(made[0].matrix, 1), (std::vector<float>{5, 7}));
  EXPECT_EQ(row(made[1].matrix, 0), (std::vector<float>{2, 4}));
  const std::string sinks = "model.layers.3.self_attn.sinks";
  EXPECT_TRUE(is_gpt_oss_tensor(sinks));
  all[sinks] = floats({8}, values);
  EXPECT_EQ(read_gpt_oss_tensor(sinks, all, "f")->at(0).name, "blk.3.attn_sinks.weight");
}

TEST(HfGptOss, WrongShapesAreNamed) {
  const std::vector<float> values(12);
  HfTensors all;
  all[std::string(kPrefix) + "gate_up_proj_scales"] = floats({4, 3}, values);
  for (const std::string what : {"gate_up_proj", "gate_up_proj_bias", "gate_up_proj_blocks"}) {
    const std::string name = kPrefix + what;
    all[name] = floats({4, 3}, values);
    EXPECT_EQ(read_gpt_oss_tensor(name, all, "f").error().kind, ErrorKind::kInvalid) << name;
  }
  const std::string other = std::string(kPrefix) + "side_proj";
  all[other] = floats({4, 3}, values);
  EXPECT_EQ(read_gpt_oss_tensor(other, all, "f").error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace wok
