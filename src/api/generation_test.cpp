// Streams, whole replies, stop strings, log-probabilities, aborts, on a fake engine.
#include "api/generation.h"

#include <gtest/gtest.h>

#include "tests/support/api_fixture.h"

namespace wok {
namespace {

using nlohmann::json;
using test::ApiFixture;
using test::FakeEngineOptions;

const char* const kChat = "/v1/chat/completions";
const char* const kCompletion = "/v1/completions";

json chat(json members = json::object()) {
  json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"seed", 5}, {"max_tokens", 60}};
  body.update(members);
  return body;
}

// What a client of a stream puts together: choices as a whole reply has them, and usage.
struct Assembled {
  std::vector<std::string> texts, reasons;
  std::vector<json> logprobs, token_ids;
  json usage;
  int chunks = 0;
};

Assembled assemble(const std::vector<json>& events, size_t choices, bool is_chat) {
  Assembled all;
  all.texts.resize(choices);
  all.reasons.resize(choices);
  all.logprobs.assign(choices, json::array());
  all.token_ids.assign(choices, json::array());
  for (const json& event : events) {
    if (event == "[DONE]") continue;
    if (event["choices"].empty()) {
      all.usage = event["usage"];
      continue;
    }
    ++all.chunks;
    const json& choice = event["choices"][0];
    const auto index = choice["index"].get<size_t>();
    all.texts[index] += is_chat ? choice["delta"].value("content", "") : choice.value("text", "");
    if (choice["finish_reason"].is_string()) all.reasons[index] = choice["finish_reason"];
    if (choice["logprobs"].is_object()) {
      for (const json& entry : choice["logprobs"][is_chat ? "content" : "tokens"]) {
        all.logprobs[index].push_back(entry);
      }
    }
    for (const json& id : choice.value("token_ids", json::array())) {
      all.token_ids[index].push_back(id);
    }
  }
  return all;
}

void expect_stream_equals_whole(ApiFixture& api, const char* path, json body, size_t choices) {
  const bool is_chat = path == kChat;
  const json whole = api.post(path, body)->json();
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto events = api.post(path, body)->events();
  const Assembled stream = assemble(events, choices, is_chat);
  ASSERT_EQ(whole["choices"].size(), choices) << whole;
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i < choices; ++i) {
    const json& choice = whole["choices"][i];
    EXPECT_EQ(choice["index"], i);
    EXPECT_EQ(stream.texts[i], is_chat ? choice["message"]["content"] : choice["text"]);
    EXPECT_EQ(stream.reasons[i], choice["finish_reason"]);
    if (choice["logprobs"].is_object()) {
      EXPECT_EQ(stream.logprobs[i], choice["logprobs"][is_chat ? "content" : "tokens"]);
    }
    EXPECT_EQ(stream.token_ids[i], choice.value("token_ids", json::array()));
  }
  for (const char* count : {"prompt_tokens", "completion_tokens", "total_tokens"}) {
    EXPECT_EQ(stream.usage[count], whole["usage"][count]);
  }
  EXPECT_TRUE(stream.usage["prompt_tokens_details"]["cached_tokens"].is_number());
}

TEST(Generation, StreamsSayTheSameAsWholeReplies) {
  ApiFixture api;
  expect_stream_equals_whole(api, kChat, chat(), 1);
  expect_stream_equals_whole(api, kChat, chat({{"n", 3}, {"return_token_ids", true}}), 3);
  expect_stream_equals_whole(api, kChat, chat({{"logprobs", true}, {"top_logprobs", 2}}), 1);
  expect_stream_equals_whole(api, kChat, chat({{"stop", {"eta", " g"}}, {"logprobs", true}}), 1);
  const json two{{"prompt", {"a", "b"}}, {"n", 2}, {"seed", 1}, {"logprobs", 1}};
  expect_stream_equals_whole(api, kCompletion, two, 4);
  const json echo{{"prompt", "Once upon"}, {"echo", true}, {"seed", 1}};
  expect_stream_equals_whole(api, kCompletion, echo, 1);
}

TEST(Generation, StopStringsMayStraddleTokensAndAreNeverLeaked) {
  FakeEngineOptions options;
  options.script = test::script_of("one two STOPPED three");
  for (const std::string stop : {"STOP", " ST", "D th", "three", "o"}) {
    ApiFixture api(options);
    const json reply = api.post(kChat, chat({{"stop", stop}}))->json();
    const std::string full = "one two STOPPED three";
    EXPECT_EQ(reply["choices"][0]["message"]["content"], full.substr(0, full.find(stop)));
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(reply["usage"]["completion_tokens"], full.find(stop) + stop.size());
    EXPECT_TRUE(api.wait_idle());
    const json kept =
        api.post(kChat, chat({{"stop", stop}, {"include_stop_str_in_output", true}}))->json();
    EXPECT_EQ(kept["choices"][0]["message"]["content"],
              full.substr(0, full.find(stop) + stop.size()));
    expect_stream_equals_whole(api, kChat, chat({{"stop", stop}, {"logprobs", true}}), 1);
  }
}

TEST(Generation, AStopStringEndsTheEngineRequestAtOnce) {
  FakeEngineOptions options;
  options.script = test::script_of("ab" + std::string(100'000, '.'));
  options.context_tokens = 200'000;
  options.token_delay = std::chrono::milliseconds(1);
  ApiFixture api(options);
  api.post(kChat, chat({{"stop", "b"}, {"max_tokens", 100'000}}));
  EXPECT_TRUE(api.wait_idle());
  EXPECT_EQ(api.model.engine->stats().aborted, 1u);
  EXPECT_LT(api.model.engine->stats().generated_tokens, 50'000u);
}

TEST(Generation, TextThatNeverCompletesTheStopComesOut) {
  FakeEngineOptions options;
  options.script = test::script_of("wait for STO");
  ApiFixture api(options);
  const json reply = api.post(kChat, chat({{"stop", "STOP"}}))->json();
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "wait for STO");
}

TEST(Generation, CharactersAreNotSplitAndHeldTokensKeepTheirLogprobs) {
  FakeEngineOptions options;
  options.script = test::script_of("\xF0\x9F\x98\x80!");
  ApiFixture api(options);
  const auto events =
      api.post(kChat, chat({{"stream", true}, {"logprobs", true}, {"top_logprobs", 0}}))->events();
  ASSERT_EQ(events.size(), 4u);  // 😀, !, the end, [DONE]
  const json& first = events[0]["choices"][0];
  EXPECT_EQ(first["delta"]["content"], "\xF0\x9F\x98\x80");
  EXPECT_EQ(first["delta"]["role"], "assistant");
  ASSERT_EQ(first["logprobs"]["content"].size(), 4u);
  EXPECT_EQ(first["logprobs"]["content"][0]["bytes"], json::array({0xF0}));
  EXPECT_EQ(first["logprobs"]["content"][0]["top_logprobs"], json::array());
  EXPECT_FALSE(events[1]["choices"][0]["delta"].contains("role"));
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[2]["choices"][0]["delta"], json::object());
}

TEST(Generation, CompletionLogprobsHaveOpenAIsFourArrays) {
  FakeEngineOptions options;
  options.script = {256, test::FakeTokenizer().id_of(" caf\xC3\xA9"), 0xE2};
  ApiFixture api(options);
  const json body{{"prompt", "x"}, {"logprobs", 2}, {"max_tokens", 3}};
  const json logprobs = api.post(kCompletion, body)->json()["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json::array({" alpha", " caf\xC3\xA9", "bytes:\\xe2"}));
  EXPECT_EQ(logprobs["text_offset"], json::array({0, 6, 11}));
  EXPECT_EQ(logprobs["token_logprobs"], json::array({-0.25, -0.25, -0.25}));
  EXPECT_EQ(logprobs["top_logprobs"][0], json({{" alpha", -0.25}, {" beta", -1.25}}));
}

TEST(Generation, StopTokensEndTheTextAndAreNoPartOfIt) {
  FakeEngineOptions options;
  options.script = test::script_of("abc");
  ApiFixture api(options);
  const json reply =
      api.post(kChat, chat({{"stop_token_ids", {'c'}}, {"return_token_ids", true}}))->json();
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "ab");
  EXPECT_EQ(reply["choices"][0]["token_ids"], json::array({'a', 'b', 'c'}));
  EXPECT_EQ(reply["choices"][0]["prompt_token_ids"].size(), reply["usage"]["prompt_tokens"]);
}

TEST(Generation, ChoiceISamplesWithSeedPlusI) {
  ApiFixture api;
  const json three = api.post(kChat, chat({{"n", 3}, {"seed", 10}}))->json();
  for (int i = 0; i < 3; ++i) {
    const json alone = api.post(kChat, chat({{"seed", 10 + i}}))->json();
    EXPECT_EQ(three["choices"][i]["message"], alone["choices"][0]["message"]);
  }
  EXPECT_NE(three["choices"][0]["message"], three["choices"][1]["message"]);
}

TEST(Generation, CachedTokensAreReportedAndNamespacesKeptApart) {
  ApiFixture api;
  const std::string prompt(100, 'x');
  const auto cached = [&](const char* salt) {
    json body{{"prompt", prompt}, {"max_tokens", 1}};
    if (salt != nullptr) body["cache_salt"] = salt;
    return api.post(kCompletion, body)->json()["usage"]["prompt_tokens_details"]["cached_tokens"];
  };
  EXPECT_EQ(cached(nullptr), 0);
  EXPECT_EQ(cached(nullptr), 96);
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("b"), 0);
  EXPECT_EQ(cached("a"), 96);
}

TEST(Generation, AClientThatGoesHasItsRequestAborted) {
  for (const bool stream : {false, true}) {
    FakeEngineOptions options;
    options.context_tokens = 10'000'000;
    options.token_delay = std::chrono::milliseconds(1);
    ApiFixture api(options);
    auto writer = api.start(
        "POST", kChat,
        chat({{"stream", stream}, {"max_tokens", 5'000'000}, {"ignore_eos", true}, {"n", 3}})
            .dump());
    writer->cancel(CancelReason::kDisconnect);
    EXPECT_TRUE(api.wait_idle()) << "stream: " << stream;
  }
}

TEST(Generation, WaitingRequestsAreAbortedToo) {
  FakeEngineOptions options;
  options.max_sequences = 0;  // nothing ever runs
  ApiFixture api(options);
  auto writer = api.start("POST", kChat, chat().dump());
  writer->cancel(CancelReason::kDisconnect);
  EXPECT_TRUE(api.wait_idle());
}

TEST(Generation, WhenTimeIsOverTheClientIsTold) {
  FakeEngineOptions options;
  options.context_tokens = 10'000'000;
  options.token_delay = std::chrono::milliseconds(1);
  ApiFixture api(options);
  const json body = chat({{"max_tokens", 5'000'000}, {"ignore_eos", true}});
  auto whole = api.start("POST", kChat, body.dump());
  whole->cancel(CancelReason::kTimeout);
  ASSERT_TRUE(whole->wait());
  EXPECT_EQ(whole->whole().status, 504);

  json streamed = body;
  streamed.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  auto stream = api.start("POST", kChat, streamed.dump());
  ASSERT_TRUE(stream->wait_for_chunk());
  stream->cancel(CancelReason::kShutdown);
  ASSERT_TRUE(stream->wait());
  const Assembled all = assemble(stream->events(), 1, true);
  EXPECT_EQ(all.reasons[0], "abort");
  EXPECT_TRUE(all.usage.is_object()) << "the usage chunk comes after an abort, too";
}

TEST(Generation, AFullQueueIs429AndTakesBackWhatWasSubmitted) {
  FakeEngineOptions options;
  options.max_sequences = 0;
  options.max_queued = 2;
  ApiFixture api(options);
  const auto reply = api.post(kChat, chat({{"n", 4}, {"stream", true}}));
  EXPECT_EQ(reply->whole().status, 429);
  EXPECT_FALSE(reply->streamed());
  EXPECT_EQ(reply->json()["error"]["type"], "rate_limit_error");
  EXPECT_EQ(reply->whole().headers[0].first, "Retry-After");
  EXPECT_TRUE(api.wait_idle());
}

TEST(Generation, AnEngineErrorIsNoAnswer) {
  FakeEngineOptions options;
  options.fail_with = FinishReason::kError;
  ApiFixture api(options);
  EXPECT_EQ(api.post(kChat, chat())->whole().status, 500);
  const auto events = api.post(kChat, chat({{"stream", true}}))->events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["error"]["type"], "server_error");
}

TEST(Generation, DrainingRefusesNewRequestsOnly) {
  ApiFixture api;
  api.context.drain();
  EXPECT_EQ(api.post(kChat, chat())->whole().status, 503);
  EXPECT_EQ(api.get("/ready")->whole().status, 503);
  EXPECT_EQ(api.get("/health")->json()["status"], "draining");
}

}  // namespace
}  // namespace wok
