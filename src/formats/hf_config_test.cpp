// Hugging Face configurations in GGUF's terms: how each scaling of RoPE is read, caps, windows, and
// what is refused by name.
#include "formats/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace wok {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json config(const char* type, const Json& more = Json::object()) {
  Json c = {{"model_type", type},
            {"num_hidden_layers", 4},
            {"hidden_size", 64},
            {"intermediate_size", 96},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"max_position_embeddings", 4096},
            {"head_dim", 16}};
  c.update(more);
  return c;
}

Json scaled(const Json& scaling) {
  return {{"rope_scaling", scaling}};
}

// What the configuration says of `name`; absent: NaN.
double number(const Json& c, const std::string& name) {
  const auto read = read_hf_config(c, "folder");
  if (!read.ok()) {
    ADD_FAILURE() << read.error().message;
    return 0;
  }
  const auto it = read->keys.find(read->architecture + "." + name);
  if (it == read->keys.end()) return std::nan("");
  if (const auto* whole = std::get_if<int64_t>(&it->second)) return static_cast<double>(*whole);
  return std::get<double>(it->second);
}

void expect_refused(const Json& c, ErrorKind kind, const std::string& reason) {
  const auto read = read_hf_config(c, "folder");
  ASSERT_FALSE(read.ok()) << "read; expected: " << reason;
  EXPECT_EQ(read.error().kind, kind);
  EXPECT_THAT(read.error().message, HasSubstr(reason));
}

TEST(HfConfig, LinearScalingIsKept) {
  const Json c = config("llama", scaled({{"type", "linear"}, {"factor", 4.0}}));
  EXPECT_EQ(number(c, "rope.scaling.factor"), 4);
  EXPECT_EQ(std::get<std::string>(read_hf_config(c, "f")->keys.at("llama.rope.scaling.type")),
            "linear");
}

TEST(HfConfig, DynamicScalingServesTheTrainedLength) {
  const Json dynamic = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  EXPECT_EQ(number(config("llama", scaled(dynamic)), "context_length"), 4096);
  EXPECT_TRUE(std::isnan(number(config("llama", scaled(dynamic)), "rope.scaling.factor")));
  Json stretched = dynamic;
  stretched["original_max_position_embeddings"] = 1024;
  EXPECT_EQ(number(config("llama", scaled(stretched)), "context_length"), 1024);
}

TEST(HfConfig, LongRopeBringsItsDivisors) {
  Json scaling = {{"type", "su"}, {"short_factor", {1, 1.5}}, {"long_factor", {2.0, 3.0}}};
  const Json c = config("phi3", {{"rope_scaling", scaling},
                                 {"original_max_position_embeddings", 64},
                                 {"partial_rotary_factor", 0.25},
                                 {"sliding_window", 100}});
  const HfConfig read = read_hf_config(c, "folder").value();
  EXPECT_EQ(read.rope_vectors.at("rope_factors_short"), (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(read.rope_vectors.at("rope_factors_long"), (std::vector<float>{2, 3}));
  EXPECT_EQ(number(c, "rope.scaling.original_context_length"), 64);
  EXPECT_EQ(number(c, "rope.dimension_count"), 4);
  EXPECT_EQ(number(c, "attention.sliding_window"), 100);
  // sqrt(1 + ln(4096 / 64) / ln(64))
  EXPECT_NEAR(number(c, "rope.scaling.attn_factor"), std::sqrt(2.0), 1e-12);
  scaling.erase("long_factor");
  expect_refused(config("phi3", scaled(scaling)), ErrorKind::kInvalid,
                 "longrope has no 'long_factor'");
}

TEST(HfConfig, UnknownScalingIsRefusedByName) {
  expect_refused(config("llama", scaled({{"rope_type", "spiral"}})), ErrorKind::kUnsupported,
                 "RoPE scaling 'spiral' is not supported");
}

TEST(HfConfig, CapsOfGemma) {
  EXPECT_EQ(number(config("gemma2", {{"sliding_window", 32}}), "attn_logit_softcapping"), 50);
  EXPECT_EQ(number(config("gemma2", {{"sliding_window", 32}}), "final_logit_softcapping"), 30);
  const Json none = {{"sliding_window", 32}, {"attn_logit_softcapping", nullptr}};
  EXPECT_EQ(number(config("gemma2", none), "attn_logit_softcapping"), 0);
  const Json capped = {{"sliding_window", 32}, {"final_logit_softcapping", 20.0}};
  EXPECT_EQ(number(config("gemma3_text", capped), "final_logit_softcapping"), 20);
  expect_refused(config("llama", capped), ErrorKind::kUnsupported, "final_logit_softcapping is 20");
  const Json scores = {{"sliding_window", 32}, {"attn_logit_softcapping", 20.0}};
  expect_refused(config("gemma3_text", scores), ErrorKind::kUnsupported, "attn_logit_softcapping");
  const Json scale = {{"sliding_window", 32}, {"query_pre_attn_scalar", 144}};
  EXPECT_NEAR(number(config("gemma2", scale), "attention.scale"), 1 / 12.0, 1e-12);
}

TEST(HfConfig, WindowsStandWhereTheArchitectureHasThem) {
  Json kinds =
      Json::array({"sliding_attention", "full_attention", "sliding_attention", "full_attention"});
  Json c = config("gemma2", {{"sliding_window", 32}, {"layer_types", kinds}});
  EXPECT_EQ(number(c, "attention.sliding_window"), 32);
  c["layer_types"][1] = "sliding_attention";
  expect_refused(c, ErrorKind::kUnsupported, "layer_types is \"sliding_attention\"");
  c = config("qwen3", {{"layer_types", kinds}});
  expect_refused(c, ErrorKind::kUnsupported, "wok runs qwen3 with \"full_attention\"");
}

}  // namespace
}  // namespace wok
