// Every weight format against the `gguf` package's own dequantizers (tests/golden/dequant.json),
// bit for bit, and its packed codes against its dequantized values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "quant/pack_matrix.h"
#include "quant/weight_format.h"

namespace wok {
namespace {

std::vector<uint8_t> from_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

nlohmann::json golden() {
  std::ifstream file(WOK_SOURCE_DIR "/tests/golden/dequant.json");
  return nlohmann::json::parse(file);
}

TEST(WeightFormats, DequantizeLikeTheReferencePackage) {
  size_t compared = 0;
  const nlohmann::json file = golden();
  for (const auto& type : file["types"]) {
    const WeightFormat* format = find_weight_format(type["id"]);
    if (format == nullptr) continue;  // the file also holds types that wok does not read yet
    ++compared;
    EXPECT_EQ(type["name"], format->name);
    EXPECT_EQ(gguf_type_name(format->gguf_type), format->name);
    if (format->block > 1) {
      EXPECT_EQ(type["block_elements"], format->block) << format->name;
      EXPECT_EQ(type["block_bytes"], format->block_bytes) << format->name;
    }
    const std::vector<uint8_t> data = from_hex(type["data"]);
    const std::string values = type["values"];
    const auto n = static_cast<int64_t>(values.size() / 8);
    ASSERT_EQ(format->row_bytes(n), static_cast<int64_t>(data.size())) << format->name;
    std::vector<float> out(n);
    format->dequantize(data.data(), out.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const auto bits = static_cast<uint32_t>(std::stoul(values.substr(8 * i, 8), nullptr, 16));
      ASSERT_EQ(out[i], std::bit_cast<float>(bits)) << format->name << " element " << i;
    }
  }
  EXPECT_EQ(compared, weight_formats().size() - 3);  // all but F32, Q1_0 and Q2_0
}

// Two types that the package has no dequantizer of: d = 0.5 (0x3800), then bits.
TEST(WeightFormats, OneAndTwoBitBlocksMeanWhatTheirBitsSay) {
  std::vector<uint8_t> block(18);
  block[1] = 0x38;
  block[2] = 0b00000101;
  block[17] = 0x80;
  std::vector<float> out(128);
  find_weight_format(41)->dequantize(block.data(), out.data(), 128);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 4),
            (std::vector<float>{0.5f, -0.5f, 0.5f, -0.5f}));
  EXPECT_EQ(out[127], 0.5f);
  EXPECT_EQ(std::count(out.begin(), out.end(), 0.5f), 3);
  block[2] = 0b11100100;  // 0, 1, 2, 3, lowest first
  find_weight_format(42)->dequantize(block.data(), out.data(), 64);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 5),
            (std::vector<float>{-0.5f, 0, 0.5f, 1, -0.5f}));
  EXPECT_EQ(out[63], 0.5f);
}

TEST(WeightFormats, CodesMeanTheDequantizedValues) {
  const nlohmann::json file = golden();
  for (const auto& type : file["types"]) {
    const WeightFormat* format = find_weight_format(type["id"]);
    if (format == nullptr || format->codes == nullptr) continue;
    const std::vector<uint8_t> data = from_hex(type["data"]);
    std::vector<float> want(format->block);
    format->dequantize(data.data(), want.data(), format->block);
    std::vector<PackBlock> blocks(format->block / kBlockColumns);
    format->codes(data.data(), 1, blocks.data());
    for (int32_t part = 0; part < format->block / kBlockColumns; ++part) {
      const PackBlock& block = blocks[part];
      for (int32_t c = 0; c < kBlockColumns; ++c) {
        const float value = unpacked_weight(format->family, format->codebook, block, c);
        const float expected = want[part * kBlockColumns + c];
        const float size = std::fabs(block.min) + std::fabs(block.scale) * 64 + std::fabs(expected);
        ASSERT_NEAR(value, expected, 1e-6f * size) << format->name << " column " << c;
      }
    }
  }
}

// pack_panels goes by words and stretches; pack_block by bytes, as pack.h describes the layout.
TEST(WeightFormats, PackedPanelsAreThoseOfThePlainForm) {
  constexpr int32_t kRows = 21, kWidth = 16, kCols = 2304;  // more than a stretch of blocks
  KernelTable table = reference_kernels();
  table.panel_rows = kWidth;
  for (const WeightFormat* format : weight_formats()) {
    const int64_t row_bytes = format->row_bytes(kCols);
    std::vector<uint8_t> rows(kRows * row_bytes);
    uint32_t state = 7;
    for (uint8_t& byte : rows) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<uint8_t>(state >> 24);
    }
    std::vector<uint8_t> packed(packed_matrix_bytes(*format, table, kRows, kCols));
    std::vector<uint8_t> want(packed.size());
    pack_panels(*format, table, kRows, kCols, rows.data(), 0, panel_count(table, kRows),
                packed.data());
    const size_t panel_bytes = packed_panel_bytes(format->family, kWidth, kCols);
    std::vector<PackBlock> blocks(kCols / kBlockColumns);
    for (int32_t r = 0; r < kRows; ++r) {
      const uint8_t* row = rows.data() + r * row_bytes;
      uint8_t* panel = want.data() + r / kWidth * panel_bytes;
      if (format->codes == nullptr) {
        const size_t size = format->block_bytes;
        for (size_t c = 0; c < kCols; ++c) {
          std::copy_n(row + c * size, size, panel + (c * kWidth + r % kWidth) * size);
        }
        continue;
      }
      format->codes(row, kCols / format->block, blocks.data());
      for (int32_t b = 0; b < kCols / kBlockColumns; ++b) {
        pack_block(format->family, kWidth, blocks[b], b, r % kWidth, panel);
      }
    }
    EXPECT_TRUE(packed == want) << format->name;
  }
}

// A packed matrix times a unit vector gives back a column of weights.
TEST(WeightFormats, PackedMatricesKeepTheirWeights) {
  constexpr int32_t kRows = 21, kCols = 512;
  for (const WeightFormat* format : weight_formats()) {
    std::vector<uint8_t> rows(kRows * format->row_bytes(kCols));
    uint32_t state = 1;
    for (uint8_t& byte : rows) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<uint8_t>(state >> 24);
    }
    // Exponents of random halves and floats can be anything: keep every 16-bit word moderate, and
    // where a block has an odd number of bytes the first of each.
    for (size_t i = 1; i < rows.size(); i += 2) rows[i] = (rows[i] & 0x80) | 0x28 | (rows[i] & 7);
    if (format->block_bytes % 2 == 1) {
      for (size_t i = 0; i < rows.size(); i += format->block_bytes) rows[i] = 120;
    }
    for (const KernelTable* table : {avx2_kernels(Streams::kOne), avx512_kernels(Streams::kOne)}) {
      if (table == nullptr) continue;
      std::vector<uint8_t> packed(packed_matrix_bytes(*format, *table, kRows, kCols));
      pack_panels(*format, *table, kRows, kCols, rows.data(), 0, panel_count(*table, kRows),
                  packed.data());
      const Matrix m = make_matrix(*format, *table, kRows, kCols, rows.data(), packed.data());
      EXPECT_EQ(m.panel_bytes * panel_count(*table, kRows), packed.size()) << format->name;
      EXPECT_FALSE(m.native);
    }
    const KernelTable& plain = reference_kernels();
    const Matrix m = make_matrix(*format, plain, kRows, kCols, rows.data(), nullptr);
    std::vector<float> x(kCols), y(kRows), want(kCols);
    x[300] = 1.0f;
    const Activations a{.f32 = x.data(), .rows = 1, .cols = kCols};
    std::vector<uint8_t> scratch(matmul_scratch_bytes(kCols));
    plain.matmul({.weights = &m,
                  .x = &a,
                  .row_end = 1,
                  .panel_end = kRows,
                  .y = y.data(),
                  .y_stride = kRows,
                  .scratch = scratch.data()});
    for (int32_t r = 0; r < kRows; ++r) {
      format->dequantize(rows.data() + r * format->row_bytes(kCols), want.data(), kCols);
      ASSERT_EQ(y[r], want[300]) << format->name << " row " << r;
    }
  }
}

}  // namespace
}  // namespace wok
