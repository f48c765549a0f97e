// Routing, and the endpoints that generate nothing.
#include <gtest/gtest.h>

#include "tests/support/api_fixture.h"

namespace wok {
namespace {

using nlohmann::json;

TEST(Endpoints, UnknownPathsAndWrongMethods) {
  test::ApiFixture api;
  const auto missing = api.get("/v1/nope");
  EXPECT_EQ(missing->whole().status, 404);
  for (const char* member : {"message", "type", "param", "code"}) {
    EXPECT_TRUE(missing->json()["error"].contains(member));
  }
  const auto wrong = api.get("/v1/chat/completions");
  EXPECT_EQ(wrong->whole().status, 405);
  EXPECT_EQ(wrong->whole().headers.at(0),
            (std::pair<std::string, std::string>("Allow", "POST, OPTIONS")));
  EXPECT_EQ(find_route("HEAD", "/health").endpoint->path, "/health");
  EXPECT_EQ(find_route("GET", "/v1/models/").endpoint, nullptr);
}

TEST(Endpoints, Models) {
  test::ApiFixture api;
  EXPECT_EQ(api.get("/v1/models")->json()["data"][0]["id"], "fake");
  EXPECT_EQ(api.get("/v1/models/fake")->json()["object"], "model");
  const auto unknown = api.get("/v1/models/some/other");
  EXPECT_EQ(unknown->whole().status, 404);
  EXPECT_EQ(unknown->json()["error"]["code"], "model_not_found");
}

TEST(Endpoints, TokenizeAndBack) {
  test::ApiFixture api;
  const json tokens = api.post("/tokenize", {{"prompt", "caf\xC3\xA9"}})->json();
  EXPECT_EQ(tokens["count"], 6) << "with BOS";
  EXPECT_EQ(tokens["max_model_len"], 4096);
  const json text =
      api.post("/detokenize", {{"tokens", tokens["tokens"]}, {"skip_special_tokens", true}})
          ->json();
  EXPECT_EQ(text["prompt"], "caf\xC3\xA9");
  EXPECT_EQ(api.post("/detokenize", {{"tokens", {99999}}})->whole().status, 400);
  EXPECT_EQ(api.post("/tokenize", json::object())->whole().status, 400);
  EXPECT_EQ(
      api.post("/tokenize", {{"prompt", "a"}, {"add_special_tokens", false}})->json()["tokens"],
      json::array({'a'}));
}

TEST(Endpoints, ApplyTemplateShowsWhatAChatFeeds) {
  test::ApiFixture api;
  const json body{
      {"messages",
       {{{"role", "developer"}, {"content", "be brief"}},
        {{"role", "user"},
         {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}}}}};
  EXPECT_EQ(api.post("/apply-template", body)->json()["prompt"],
            "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
            "<|im_start|>assistant\n");
  json same = body;
  same["return_token_strs"] = true;
  EXPECT_EQ(api.post("/tokenize", same)->json()["token_strs"][1], "<|im_start|>");
}

TEST(Endpoints, BeforeTheModelIsLoaded) {
  ApiContext context;
  const auto get = [&](const char* method, const char* path) {
    auto writer = std::make_shared<test::RecordingWriter>();
    dispatch(context, *find_route(method, path).endpoint, {method, path, "{}", 0}, writer);
    EXPECT_TRUE(writer->wait());
    return writer->whole().status;
  };
  EXPECT_EQ(get("GET", "/health"), 200);
  EXPECT_EQ(get("GET", "/ready"), 503);
  EXPECT_EQ(get("GET", "/metrics"), 200);
  EXPECT_EQ(get("GET", "/v1/models"), 200);
  EXPECT_EQ(get("POST", "/v1/chat/completions"), 503);
  EXPECT_EQ(get("POST", "/tokenize"), 503);
}

TEST(Endpoints, MetricsHaveBothNames) {
  test::ApiFixture api;
  api.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 3}, {"ignore_eos", true}});
  ASSERT_TRUE(api.wait_idle());
  const std::string text = api.get("/metrics")->whole().body;
  for (const char* line :
       {"wok_time_to_first_token_seconds_count{model_name=\"fake\"} 1",
        "vllm:time_to_first_token_seconds_count{model_name=\"fake\"} 1",
        "vllm:inter_token_latency_seconds_count{model_name=\"fake\"} 2",
        "vllm:e2e_request_latency_seconds_count{model_name=\"fake\"} 1",
        "vllm:request_success_total{finished_reason=\"length\",model_name=\"fake\"} 1",
        "vllm:num_requests_running{model_name=\"fake\"} 0",
        "vllm:num_requests_waiting{",
        "vllm:kv_cache_usage_perc{",
        "vllm:prompt_tokens_total{model_name=\"fake\"} 2",
        "vllm:generation_tokens_total{model_name=\"fake\"} 3",
        "vllm:prefix_cache_queries{",
        "vllm:prefix_cache_hits{",
        "vllm:request_queue_time_seconds_bucket{",
        "vllm:request_prefill_time_seconds_sum{",
        "vllm:request_decode_time_seconds_count{",
        "wok_kv_pages{state=\"free\",model_name=\"fake\"} 64",
        "wok_kv_waste_ratio{",
        "wok_steps_total{",
        "wok_preemptions_total{",
        "wok_draft_tokens_total{model_name=\"fake\"} 12",
        "wok_draft_tokens_accepted_total{model_name=\"fake\"} 3",
        "vllm:spec_decode_num_draft_tokens_total{model_name=\"fake\"} 12",
        "vllm:spec_decode_num_accepted_tokens_total{model_name=\"fake\"} 3",
        "wok_build_info{version="}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  }
  EXPECT_EQ(api.get("/metrics")->whole().body, text) << "reading changes nothing";
}

}  // namespace
}  // namespace wok
