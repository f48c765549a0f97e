#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/model_bench.h"
#include "bench/roof.h"
#include "tests/support/tiny_model.h"

namespace wok::bench {
namespace {

TEST(Roof, MeasuresWhatThisCpuHas) {
  auto meter = RoofMeter::create(4 << 20);
  ASSERT_TRUE(meter.ok());
  ComputePool pool(2);
  const Roof roof = meter->measure(pool, {.repetitions = 1});
  EXPECT_FALSE(roof.cpu.empty());
  EXPECT_GT(roof.read_gb_per_s("DRAM", 2), 0);
  EXPECT_EQ(roof.read_gb_per_s("DRAM", 3), 0) << "not measured";
  for (const Peak& peak : roof.peaks) EXPECT_GT(peak.gop_per_s, 0) << peak.instruction;
  const auto json = nlohmann::json::parse(roof_json(roof));
  EXPECT_EQ(json["reads"].size(), roof.reads.size());
  EXPECT_EQ(json["peaks"].size(), roof.peaks.size());
  EXPECT_NE(roof_table(roof).find("DRAM"), std::string::npos);
}

class ModelBench : public testing::Test {
 protected:
  test::TinyModel tiny_ = test::make_tiny({}, "");
};

TEST_F(ModelBench, GivesARowForEveryPointOfTheGrid) {
  const ModelBenchOptions options{.prompts = {20},
                                  .outputs = {4},
                                  .depths = {0, 30},
                                  .batches = {1, 3},
                                  .threads = {1, 2},
                                  .repetitions = 2,
                                  .chunk = 16};
  size_t seen = 0;
  const auto report =
      bench_model(*tiny_.model, "tiny, \"quoted\"", options, [&](const auto&) { ++seen; });
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->rows.size(), 12u);  // 2 threads, 2 depths, one prefill and two decodes
  EXPECT_EQ(seen, 12u);
  for (const ModelBenchRow& row : report->rows) {
    EXPECT_GT(row.tokens_per_s, 0);
    EXPECT_GT(row.roof, 0);
    EXPECT_GT(row.bytes_per_token, 0);
  }
  const auto json = nlohmann::json::parse(model_bench_json(*report));
  EXPECT_EQ(json["rows"].size(), 12u);
  for (const char* key : {"model", "test", "depth", "batch", "threads", "tokens_per_s", "stddev",
                          "roof", "roof_fraction"}) {
    EXPECT_TRUE(json["rows"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["rows"][0]["test"], "pp20");
  EXPECT_NE(model_bench_csv(*report).find("\n\"tiny, \"\"quoted\"\"\",pp20,0,1,1,"),
            std::string::npos);
}

TEST_F(ModelBench, KeysAndValuesAreReadOncePerSequence) {
  const ModelBenchOptions options{
      .prompts = {}, .outputs = {1}, .depths = {0, 100}, .batches = {1}, .threads = {1}};
  const auto report = bench_model(*tiny_.model, "tiny", options, {});
  ASSERT_TRUE(report.ok());
  const DecoderConfig& c = tiny_.model->config();
  const double more = report->rows[1].bytes_per_token - report->rows[0].bytes_per_token;
  EXPECT_EQ(more, 100.0 * c.layers * 2 * c.kv_heads * c.head_dim * 2);
}

TEST_F(ModelBench, RefusesWhatTheContextCannotHold) {
  const ModelBenchOptions options{.prompts = {10}, .depths = {4090}, .threads = {1}};
  const auto report = bench_model(*tiny_.model, "tiny", options, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kTooLarge);
}

TEST_F(ModelBench, ProfilesEveryRegionOfAStep) {
  const auto profile = profile_model(*tiny_.model, {.steps = 3, .batch = 2, .threads = 2});
  ASSERT_TRUE(profile.ok());
  const std::string table = profile_table(*profile);
  for (const char* region : {"q k v", "attention", "gate up activate", "down", "output head"}) {
    EXPECT_NE(table.find(region), std::string::npos) << region;
  }
  const auto trace = nlohmann::json::parse(profile_trace(*profile));
  ASSERT_EQ(trace["traceEvents"].size(), profile->spans.size());
  EXPECT_EQ(trace["traceEvents"][0]["ph"], "X");
}

}  // namespace
}  // namespace wok::bench
