#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"

// The bodies at 16 lanes in plain C++: what AVX-512 runs, on any machine.
#include "kernels/body/simd_plain.h"
//
#include "kernels/body/table.h"

namespace wok {
namespace {

std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> all = {&kBodyTable};
  auto choice = choose_isa("");
  if (choice.ok()) {
    for (const IsaOption& option : choice->options) {
      if (option.available) {
        auto one = choose_isa(option.name);
        EXPECT_TRUE(one.ok()) << one.error().message;
        if (one.ok()) all.push_back(one->kernels);
      }
    }
  }
  return all;
}

TEST(Kernels, EveryTableOfThisMachineAgreesWithTheReference) {
  ASSERT_GE(tables().size(), 2u);
  for (const KernelTable* table : tables()) EXPECT_EQ(self_check(*table), "") << table->name;
}

TEST(Kernels, SelfTestNoticesAWrongKernel) {
  KernelTable broken = kBodyTable;
  broken.silu_mul = kBodyTable.gelu_mul;
  EXPECT_NE(self_check(broken), "");
  broken = kBodyTable;
  broken.matmul = [](const MatmulArgs&) {};
  EXPECT_NE(self_check(broken), "");
  broken = kBodyTable;
  broken.kv_f16.attend = [](const AttendArgs&) {};
  EXPECT_NE(self_check(broken), "");
}

TEST(Kernels, UnknownOrMissingIsaIsAClearError) {
  EXPECT_EQ(choose_isa("sse9").error().kind, ErrorKind::kInvalid);
  EXPECT_NE(choose_isa("sse9").error().message.find("avx512"), std::string::npos);
  EXPECT_EQ(choose_isa("amx").error().kind, ErrorKind::kUnsupported);
}

// A row gives the same bits alone and in any batch.
TEST(Kernels, MatmulRowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 40, kCols = 64, kBatch = 33;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const KernelTable* table : tables()) {
    if (table->panel_rows == 0) continue;
    for (int f = 0; f < kFamilyCount; ++f) {
      const auto family = static_cast<Family>(f);
      Matrix w{.rows = kRows, .cols = kCols, .family = family};
      w.panel_bytes = packed_panel_bytes(family, table->panel_rows, kCols);
      std::vector<uint8_t> packed(w.panel_bytes * panel_count(*table, kRows));
      w.data = packed.data();
      for (int32_t r = 0; r < kRows; ++r) {
        uint8_t* panel = packed.data() + r / table->panel_rows * w.panel_bytes;
        if (family >= Family::kFloat16) {
          std::vector<uint8_t> row(kCols * 4, 0x38);
          for (size_t i = 0; i < row.size(); i += 2) row[i] = static_cast<uint8_t>(random());
          pack_float_row(family, table->panel_rows, row.data(), kCols, r % table->panel_rows,
                         panel);
          continue;
        }
        for (int32_t b = 0; b < kCols / 32; ++b) {
          PackBlock block{{}, {std::fabs(normal(random)), std::fabs(normal(random))}, -0.5f};
          for (uint8_t& c : block.code) {
            c = static_cast<uint8_t>(random()) & (family == Family::kInt4   ? 15
                                                  : family == Family::kInt5 ? 31
                                                  : family == Family::kInt6 ? 63
                                                                            : 255);
          }
          pack_block(family, table->panel_rows, block, b, r % table->panel_rows, panel);
        }
      }
      std::vector<float> x(kBatch * kCols), scale(kBatch * 2), half(kBatch * 4), sum(kBatch * 2);
      std::vector<int8_t> q(kBatch * kCols);
      for (float& v : x) v = normal(random);
      for (int32_t m = 0; m < kBatch; ++m) {
        table->quantize(&x[m * kCols], kCols, &q[m * kCols], &scale[m * 2], &half[m * 4],
                        &sum[m * 2]);
      }
      std::vector<uint8_t> scratch(matmul_scratch_bytes(kCols));
      auto run = [&](int32_t first, int32_t rows) {
        std::vector<float> y(rows * kRows);
        const Activations a{&x[first * kCols],
                            &q[first * kCols],
                            &scale[first * 2],
                            &half[first * 4],
                            &sum[first * 2],
                            rows,
                            kCols};
        table->matmul(
            {&w, &a, 0, panel_count(*table, kRows), y.data(), kRows, false, scratch.data()});
        return y;
      };
      const std::vector<float> whole = run(0, kBatch);
      for (int32_t m = 0; m < kBatch; ++m) {
        const std::vector<float> alone = run(m, 1);
        for (int32_t r = 0; r < kRows; ++r) {
          ASSERT_EQ(alone[r], whole[m * kRows + r])
              << table->name << " family " << f << " row " << m << " output " << r;
        }
      }
    }
  }
}

TEST(Kernels, ArgmaxTakesTheFirstOfEqualsAndSkipsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const KernelTable* table : tables()) {
    std::vector<float> x(100, 0.5f);
    x[41] = x[77] = 2.0f;
    x[3] = nan;
    EXPECT_EQ(table->argmax(x.data(), 100), 41) << table->name;
    EXPECT_EQ(table->max(x.data(), 100), 2.0f) << table->name;
    std::vector<float> none(100, nan);
    EXPECT_EQ(table->argmax(none.data(), 100), 0) << table->name;
  }
}

}  // namespace
}  // namespace wok
