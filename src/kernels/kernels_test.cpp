#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/activations.h"
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
  std::vector<const KernelTable*> all = runnable_tables();
  for (const Streams streams : {Streams::kOne, Streams::kSeveral}) {
    all.push_back(body_table(streams));
  }
  return all;
}

TEST(Kernels, EveryTableOfThisMachineAgreesWithTheReference) {
  ASSERT_GE(tables().size(), 3u);
  const auto best = choose_isa("");
  ASSERT_TRUE(best.ok()) << best.error().message;
  for (const IsaOption& option : best->options) {
    if (!option.available) continue;
    const auto one = choose_isa(option.name);
    EXPECT_TRUE(one.ok()) << one.error().message;
  }
  for (const KernelTable* table : tables()) EXPECT_EQ(self_check(*table), "") << table->name;
}

Matrix random_matrix(Family family, const KernelTable& table, int32_t rows, int32_t cols,
                     std::mt19937& random, std::vector<uint8_t>& packed) {
  std::normal_distribution<float> normal;
  static constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};
  Matrix w{.rows = rows, .cols = cols, .family = family, .codebook = kCodebook};
  w.panel_bytes = packed_panel_bytes(family, table.panel_rows, cols);
  packed.assign(w.panel_bytes * panel_count(table, rows), 0);
  w.data = packed.data();
  for (int32_t r = 0; r < rows; ++r) {
    uint8_t* panel = packed.data() + r / table.panel_rows * w.panel_bytes;
    if (!is_integer(family)) {
      std::vector<uint8_t> row(cols * 4, 0x38);
      for (size_t i = 0; i < row.size(); i += 2) row[i] = static_cast<uint8_t>(random());
      pack_float_row(family, table.panel_rows, row.data(), cols, r % table.panel_rows, panel);
      continue;
    }
    for (int32_t b = 0; b < cols / kBlockColumns; ++b) {
      PackBlock block{};
      block.scale = std::fabs(normal(random));
      block.second_scale = std::fabs(normal(random));
      block.min = family == Family::kInt4Group || family == Family::kInt4Point ? 7.0f : -0.5f;
      for (uint8_t& code : block.half_min_code) code = static_cast<uint8_t>(random() % 16);
      block.scale_code[0] = static_cast<uint8_t>(random() % 64);
      block.scale_code[1] = static_cast<uint8_t>(random());
      if (family == Family::kInt2Super) {  // 4 bits
        for (uint8_t& code : block.scale_code) code %= 16;
      }
      block.min_code = static_cast<uint8_t>(random() % 64);
      for (uint8_t& c : block.code) c = static_cast<uint8_t>(random() % code_levels(family));
      pack_block(family, table.panel_rows, block, b, r % table.panel_rows, panel);
    }
  }
  return w;
}

TEST(Kernels, SelfTestNoticesAWrongKernel) {
  const KernelTable& right = *body_table(Streams::kSeveral);
  KernelTable broken = right;
  broken.silu_mul = right.gelu_mul;
  EXPECT_NE(self_check(broken), "");
  broken = right;
  broken.matmul = [](const MatmulArgs&) {};
  EXPECT_NE(self_check(broken), "");
  broken = right;
  broken.kv_f16.attend = [](const AttendArgs&) {};
  EXPECT_NE(self_check(broken), "");
}

TEST(Kernels, UnknownOrMissingIsaIsAClearError) {
  EXPECT_EQ(choose_isa("sse9").error().kind, ErrorKind::kInvalid);
  EXPECT_NE(choose_isa("sse9").error().message.find("avx512"), std::string::npos);
  EXPECT_EQ(choose_isa("amx").error().kind, ErrorKind::kUnsupported);
}

// Whole rows, rows split by split and rows alone: the same bits, at every head size.
TEST(Kernels, AttentionDoesNotDependOnSplitsOrOtherRows) {
  constexpr int32_t kTokens = 600, kPages = (kTokens + kPageTokens - 1) / kPageTokens;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<int32_t> pages(kPages);
  for (int32_t p = 0; p < kPages; ++p) pages[p] = p * 11 % kPages;
  for (const KernelTable* table : tables()) {
    if (table->panel_rows == 0) continue;  // the reference sums splits in double
    for (const int32_t dim : {16, 64, 80, 128, 256}) {
      KvView kv{.page_bytes = size_t{4} * dim * kPageTokens,
                .key_offset = 0,
                .value_offset = size_t{2} * dim * kPageTokens};
      std::vector<uint8_t> pool(kv.page_bytes * kPages);
      kv.pool = pool.data();
      std::vector<float> q(kMaxAttendRows * dim);
      for (float& x : q) x = normal(random);
      std::vector<float> key(dim), value(dim);
      for (int32_t t = 0; t < kTokens; ++t) {
        for (float& x : key) x = normal(random);
        for (float& x : value) x = normal(random);
        table->kv_f16.store(kv, pages.data(), t, dim, key.data(), value.data());
      }
      AttendArgs all{.kv = kv, .page_table = pages.data(), .head_dim = dim, .scale = 0.3f};
      std::vector<float> sinks(kMaxAttendRows);
      for (float& x : sinks) x = normal(random);
      if (dim % 64 == 0) all.cap = 1.5f;
      if (dim % 80 == 0 || dim == 256) all.sinks = sinks.data();
      std::vector<float> whole(kMaxAttendRows * dim), alone(dim), parts(3 * split_floats(dim));
      all.rows = kMaxAttendRows;
      for (int r = 0; r < all.rows; ++r) {
        all.q[r] = &q[r * dim];
        all.out[r] = &whole[r * dim];
        all.end[r] = kTokens - 11 * r;
        all.begin[r] = r % 3 == 0 ? std::max(0, all.end[r] - 100) : 0;
      }
      table->kv_f16.attend(all);
      for (int r = 0; r < all.rows; ++r) {
        AttendArgs one = all;
        one.rows = 1;
        one.q[0] = all.q[r];
        one.begin[0] = all.begin[r];
        one.end[0] = all.end[r];
        for (int32_t s = 0; s < 3; ++s) {
          one.out[0] = &parts[s * split_floats(dim)];
          table->kv_f16.attend_split(one, s);
        }
        table->combine_splits(parts.data(), split_floats(dim), 3, dim,
                              all.sinks != nullptr ? &sinks[r] : nullptr, alone.data());
        ASSERT_EQ(std::vector<float>(all.out[r], all.out[r] + dim), alone)
            << table->name << ", head size " << dim << ", row " << r;
      }
    }
  }
}

// A row gives the same bits alone and in any batch, in either form, and whatever the streams.
TEST(Kernels, MatmulRowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 80, kCols = 768, kBatch = 33;
  std::normal_distribution<float> normal;
  std::map<std::pair<std::string, int>, std::vector<float>> first_of;
  int compared = 0;
  for (const KernelTable* table : tables()) {
    if (table->panel_rows == 0) continue;
    for (int f = 0; f < kFamilyCount; ++f) {
      const auto family = static_cast<Family>(f);
      std::mt19937 random(7);
      std::vector<uint8_t> packed;
      const Matrix w = random_matrix(family, *table, kRows, kCols, random, packed);
      std::vector<float> x(kBatch * kCols);
      for (float& v : x) v = normal(random);
      std::vector<uint8_t> scratch(matmul_scratch_bytes(kCols) + 64);
      uint8_t* aligned =
          scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      // Rows [first, first + rows) in one call, the first `exact` of them in the exact form.
      const auto run = [&](int32_t first, int32_t rows, int32_t exact) {
        ActivationBuffer a;
        a.reserve(rows, kCols);
        a.shape(*table, rows, kCols, exact);
        for (int32_t m = 0; m < rows; ++m) {
          std::copy_n(&x[(first + m) * kCols], kCols, a.row(m));
          a.quantize_row(*table, m);
        }
        std::vector<float> y(rows * kRows);
        table->matmul({.weights = &w,
                       .x = &a.view(),
                       .row_end = rows,
                       .panel_end = panel_count(*table, kRows),
                       .y = y.data(),
                       .y_stride = kRows,
                       .scratch = aligned});
        return y;
      };
      constexpr int32_t kExact = 14;
      const std::vector<float> whole = run(0, kBatch, kExact);
      for (int32_t m = 0; m < kBatch; ++m) {
        const std::vector<float> alone = run(m, 1, m < kExact ? 1 : 0);
        for (int32_t r = 0; r < kRows; ++r) {
          ASSERT_EQ(alone[r], whole[m * kRows + r])
              << table->name << " family " << f << " row " << m << " output " << r;
        }
      }
      const auto [first, is_new] = first_of.try_emplace({table->name, f}, whole);
      ASSERT_EQ(first->second, whole) << table->name << " family " << f;
      compared += is_new ? 0 : 1;
    }
  }
  EXPECT_GE(compared, kFamilyCount);
}

// The 16-lane body in plain C++ and in AVX-512 round weights alike, bit for bit.
TEST(Kernels, PromptRowsAreTheSameInPlainAndInAvx512) {
  constexpr int32_t kRows = 70, kCols = 768, kBatch = 13;
  const KernelTable* plain = body_table(Streams::kSeveral);
  const KernelTable* wide = avx512_kernels(Streams::kSeveral);
  if (wide == nullptr || !choose_isa("avx512").ok()) GTEST_SKIP() << "no AVX-512 here";
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (int f = 0; f < kFamilyCount; ++f) {
    const auto family = static_cast<Family>(f);
    if (!is_integer(family)) continue;
    std::vector<uint8_t> packed;
    const Matrix w = random_matrix(family, *plain, kRows, kCols, random, packed);
    std::vector<float> x(kBatch * kCols);
    for (float& v : x) v = normal(random);
    std::vector<float> y[2];
    for (const KernelTable* table : {plain, wide}) {
      ActivationBuffer a;
      a.reserve(kBatch, kCols);
      a.shape(*table, kBatch, kCols, 0);
      for (int32_t m = 0; m < kBatch; ++m) {
        std::copy_n(&x[m * kCols], kCols, a.row(m));
        a.quantize_row(*table, m);
      }
      std::vector<uint8_t> scratch(matmul_scratch_bytes(kCols) + 64);
      uint8_t* aligned =
          scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      std::vector<float>& out = y[table == wide];
      out.resize(kBatch * kRows);
      table->matmul({.weights = &w,
                     .x = &a.view(),
                     .row_end = kBatch,
                     .panel_end = panel_count(*table, kRows),
                     .y = out.data(),
                     .y_stride = kRows,
                     .scratch = aligned});
    }
    for (size_t i = 0; i < y[0].size(); ++i) {
      ASSERT_EQ(y[0][i], y[1][i]) << "family " << f << " at " << i;
    }
  }
}

TEST(Kernels, ActivationBlocksSayWhatTheirCodesSumTo) {
  constexpr int32_t kCols = 96, kExact = 3;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(kCols);
  for (float& v : x) v = normal(random);
  for (const KernelTable* table : tables()) {
    std::vector<int8_t> q(kCols * kExact);
    std::vector<ActivationBlock> blocks(kCols / 32 * kExact);
    table->quantize(x.data(), kCols, kExact, q.data(), blocks.data());
    for (int32_t b = 0; b < kCols / 32; ++b) {
      const int8_t* codes = &q[b * kExact * 32];
      const ActivationBlock& block = blocks[b * kExact];
      const int first = std::accumulate(codes, codes + 16, 0);
      const int second = std::accumulate(codes + 16, codes + 32, 0);
      EXPECT_NE(first + second, 0) << "nothing to see in these codes";
      EXPECT_EQ(block.minus8, -8 * (first + second)) << table->name;
      EXPECT_EQ(block.minus32[0], -32 * first) << table->name;
      EXPECT_EQ(block.minus32[1], -32 * second) << table->name;
      EXPECT_FLOAT_EQ(block.sum, block.scale * static_cast<float>(first + second)) << table->name;
      EXPECT_NEAR(codes[5] * block.scale, x[b * 32 + 5], block.scale) << table->name;
    }
  }
}

TEST(Kernels, GeluIsExactFarFromZero) {
  std::vector<float> x, bias, y(641), want(641);
  for (int i = 0; i < 641; ++i) {
    x.push_back(static_cast<float>(i - 320) / 16);
    bias.push_back(i % 3 == 0 ? 0.5f : 0.0f);
  }
  reference_kernels().gelu_bias(x.data(), bias.data(), 641, want.data());
  for (const KernelTable* table : tables()) {
    table->gelu_bias(x.data(), bias.data(), 641, y.data());
    for (int i = 0; i < 641; ++i) {
      EXPECT_NEAR(y[i], want[i], 3e-7f * (1 + std::fabs(x[i]))) << table->name << ", " << x[i];
    }
  }
}

// A row far from zero: its mean must go before it is squared.
TEST(Kernels, LayerNormKeepsItsDigitsFarFromZero) {
  constexpr int32_t kWidth = 45;
  std::vector<float> x(kWidth), weight(kWidth, 1), bias(kWidth, 0), y(kWidth), want(kWidth);
  for (int i = 0; i < kWidth; ++i) x[i] = 1000 + static_cast<float>(i % 7);
  reference_kernels().layernorm(x.data(), weight.data(), bias.data(), 1e-12f, kWidth, want.data());
  for (const KernelTable* table : tables()) {
    table->layernorm(x.data(), weight.data(), bias.data(), 1e-12f, kWidth, y.data());
    for (int i = 0; i < kWidth; ++i) EXPECT_NEAR(y[i], want[i], 1e-3f) << table->name;
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
