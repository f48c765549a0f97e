// What each parameter may be: a table of bodies and what is said to them.
#include <gtest/gtest.h>

#include "tests/support/api_fixture.h"

namespace wok {
namespace {

using nlohmann::json;

struct Case {
  const char* members;  // put into a request that is fine otherwise
  int status;
  const char* param;    // of the error
  const char* message;  // a part of it
};

constexpr Case kCommon[] = {
    {R"("temperature": 0)", 200, "", ""},
    {R"("temperature": null, "stop": null, "tools": null, "seed": null)", 200, "", ""},
    {R"("temperature": -0.1)", 400, "temperature", "at least 0 and at most 2, found -0.1"},
    {R"("temperature": "hot")", 400, "temperature", "found \"hot\""},
    {R"("top_p": 0)", 400, "top_p", "above 0"},
    {R"("top_k": -1)", 200, "", ""},
    {R"("top_k": 1.5)", 400, "top_k", "an integer"},
    {R"("top_k": 18446744073709551615)", 400, "top_k", "an integer"},
    {R"("min_p": 1)", 400, "min_p", "below 1"},
    {R"("typical_p": 0.5, "min_p": 0.1, "repetition_penalty": 1.1)", 200, "", ""},
    {R"("repetition_penalty": 0)", 400, "repetition_penalty", "above 0"},
    {R"("presence_penalty": 2.1)", 400, "presence_penalty", "at most 2"},
    {R"("frequency_penalty": [])", 400, "frequency_penalty", "an array of 0"},
    {R"("seed": -7)", 200, "", ""},
    {R"("seed": 18446744073709551615)", 200, "", ""},
    {R"("seed": 1.5)", 400, "seed", "64-bit"},
    {R"("n": 0)", 400, "n", "1 to 16"},
    {R"("n": 17)", 400, "n", "1 to 16"},
    {R"("n": 2, "best_of": 3)", 400, "best_of", "not supported"},
    {R"("n": 2, "best_of": 2)", 200, "", ""},
    {R"("stop": "")", 400, "stop", "1 to 1024 bytes"},
    {R"("stop": ["a", 1])", 400, "stop", "strings"},
    {R"("stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g"])", 200, "", ""},
    {R"("stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", 400,
     "stop", "at most 16, found an array of 17"},
    {R"("stop_token_ids": [276])", 400, "stop_token_ids", "from 0 to 275"},
    {R"("logit_bias": {"3": 101})", 400, "logit_bias", "-100 to 100"},
    {R"("logit_bias": {"x": 1})", 400, "logit_bias", "token ids"},
    {R"("logit_bias": {"3": -100})", 200, "", ""},
    {R"("max_tokens": 0)", 400, "max_tokens", "integer from 1"},
    {R"("max_tokens": 5000)", 400, "max_tokens", "n_ctx = 4096"},
    {R"("stream_options": {"include_usage": true})", 400, "stream_options", "`stream`"},
    {R"("stream": true, "stream_options": {"x": 1})", 400, "stream_options.x", "not a parameter"},
    {R"("stream": 1)", 400, "stream", "true or false"},
    {R"("priority": 3, "cache_salt": "tenant", "user": "me", "store": false)", 200, "", ""},
    {R"("metadata": {"a": "b"}, "service_tier": "auto", "prompt_cache_key": "k")", 200, "", ""},
    {R"("store": true)", 400, "store", "not supported"},
    {R"("tools": [], "tool_choice": "auto", "parallel_tool_calls": true)", 200, "", ""},
    {R"("tools": [{"type": "function"}])", 400, "tools", "not supported"},
    {R"("tool_choice": "required")", 400, "tool_choice", "not supported"},
    {R"("response_format": {"type": "text"})", 200, "", ""},
    {R"("response_format": {"type": "json_object"})", 400, "response_format", "not supported"},
    {R"("guided_json": {})", 400, "guided_json", "not supported"},
    {R"("structured_outputs": {"regex": "a"})", 400, "structured_outputs", "not supported"},
    {R"("modalities": ["text", "audio"])", 400, "modalities", "not supported"},
    {R"("suffix": "end")", 400, "suffix", "not supported"},
    {R"("temprature": 1)", 400, "temprature", "not a parameter that wok knows"},
    {R"("model": "other")", 404, "model", "there is `fake`"},
    {R"("model": 7)", 400, "model", "a string"},
};

void check(test::ApiFixture& api, const char* path, json body, const Case& c) {
  SCOPED_TRACE(c.members);
  body.update(json::parse(std::string("{") + c.members + "}"));
  const auto reply = api.post(path, body);
  if (reply->streamed()) {
    EXPECT_EQ(c.status, 200);
    return;
  }
  EXPECT_EQ(reply->whole().status, c.status) << reply->whole().body;
  if (c.status == 200 || reply->whole().status == 200) return;
  const json error = reply->json().at("error");
  EXPECT_EQ(error.at("param"), c.param);
  EXPECT_NE(error.at("message").get<std::string>().find(c.message), std::string::npos)
      << error.at("message");
}

TEST(Params, ChatsTakeOrRefuseThemByName) {
  test::ApiFixture api;
  const json chat{{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"max_tokens", 2}};
  for (const Case& c : kCommon) check(api, "/v1/chat/completions", chat, c);
  for (const Case& c : {
           Case{R"("max_tokens": 2, "max_completion_tokens": 3)", 400, "max_tokens", "differ"},
           Case{R"("top_logprobs": 2)", 400, "top_logprobs", "needs `logprobs`"},
           Case{R"("logprobs": true, "top_logprobs": 21)", 400, "top_logprobs", "0 to 20"},
           Case{R"("logprobs": 5)", 400, "logprobs", "true or false"},
           Case{R"("echo": true)", 400, "echo", "not supported"},
           Case{R"("prompt": "x")", 400, "prompt", "not a parameter"},
           Case{R"("messages": [])", 400, "messages", "array of 0"},
           Case{R"("messages": [{"role": "user"}])", 400, "messages[0].content", "missing"},
           Case{R"("messages": [{"role": "wizard", "content": ""}])", 400, "messages[0].role",
                "found \"wizard\""},
           Case{R"("messages": [{"role": "user", "content": "", "x": 1}])", 400, "messages[0].x",
                "not a parameter"},
           Case{R"("messages": [{"role": "user", "content": [{"type": "image_url"}]}])", 400,
                "messages[0].content", "image_url"},
           Case{R"("messages": [{"role": "assistant", "content": "a", "refusal": null}])", 200, "",
                ""},
           Case{R"("chat_template_kwargs": {"fail": true})", 400, "messages", "line 3"},
           Case{R"("chat_template_kwargs": 1)", 400, "chat_template_kwargs", "object"},
           Case{R"("add_generation_prompt": true, "continue_final_message": true)", 400,
                "continue_final_message", "exclude"},
       }) {
    check(api, "/v1/chat/completions", chat, c);
  }
}

TEST(Params, CompletionsTakeOrRefuseThemByName) {
  test::ApiFixture api;
  const json completion{{"prompt", "once"}, {"max_tokens", 2}};
  for (const Case& c : kCommon) check(api, "/v1/completions", completion, c);
  for (const Case& c : {
           Case{R"("prompt": null)", 400, "prompt", "missing"},
           Case{R"("prompt": [])", 400, "prompt", "empty"},
           Case{R"("prompt": 5)", 400, "prompt", "found 5"},
           Case{R"("prompt": [1, "a"])", 400, "prompt", "token ids"},
           Case{R"("prompt": [1, 276])", 400, "prompt", "from 0 to 275"},
           Case{R"("prompt": [[1, 2], [3]])", 200, "", ""},
           Case{R"("prompt": ["a", "b"])", 200, "", ""},
           Case{R"("logprobs": 21)", 400, "logprobs", "0 to 20"},
           Case{R"("logprobs": 1, "echo": true)", 400, "logprobs", "echo"},
           Case{R"("messages": [])", 400, "messages", "not a parameter"},
       }) {
    check(api, "/v1/completions", completion, c);
  }
  json many{{"prompt", json::array()}, {"n", 16}};
  for (int i = 0; i < 9; ++i) many["prompt"].push_back("x");
  EXPECT_EQ(api.post("/v1/completions", many)->whole().status, 400) << "9 × 16 choices";
}

TEST(Params, NothingIsCutSilently) {
  test::ApiFixture api;
  const std::string words(4200, 'x');
  const json message{{"messages", {{{"role", "user"}, {"content", words}}}}};
  const json error = api.post("/v1/chat/completions", message)->json().at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  const auto text = error.at("message").get<std::string>();
  EXPECT_NE(text.find("n_ctx = 4096"), std::string::npos) << text;
  EXPECT_NE(text.find("n_prompt = 42"), std::string::npos) << text;
  const std::string huge(5'000'000, 'x');  // refused before it is tokenized
  EXPECT_EQ(api.post("/v1/completions", {{"prompt", huge}})->json()["error"]["code"],
            "context_length_exceeded");
}

TEST(Params, WithoutMaxTokensChatsUseTheRestOfTheWindow) {
  test::FakeEngineOptions options;
  options.context_tokens = 100;
  options.script = test::script_of(std::string(500, 'a'));
  test::ApiFixture api(options);
  const json reply =
      api.post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "hi"}}}}})
          ->json();
  EXPECT_EQ(reply["usage"]["total_tokens"], 100);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
}

}  // namespace
}  // namespace wok
