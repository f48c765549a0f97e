// Clients that go, read slowly or wait too long; servers that drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/server_fixture.h"

namespace wok {
namespace {

using test::endless_chat;
using test::endless_engine;
using test::RawClient;
using test::ServerFixture;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Lifecycle, AClientThatLeavesItsStreamIsNoticed) {
  ServerFixture fixture(endless_engine());
  RawClient client(fixture.port());
  client.post("/v1/chat/completions", endless_chat(true));
  EXPECT_THAT(client.read_until("\n\n"), HasSubstr("HTTP/1.1 200"));
  client.close();
  EXPECT_TRUE(fixture.wait_idle());
}

TEST(Lifecycle, AClientThatStopsWaitingForItsWholeReplyIsNoticed) {
  ServerFixture fixture(endless_engine());
  RawClient client(fixture.port());
  client.post("/v1/chat/completions", endless_chat(false));
  ASSERT_TRUE(fixture.wait_running());
  client.close();
  EXPECT_TRUE(fixture.wait_idle());
}

TEST(Lifecycle, AClientThatLeavesTheQueueIsNoticed) {
  auto options = endless_engine();
  options.max_sequences = 0;
  ServerFixture fixture(options);
  RawClient client(fixture.port());
  client.post("/v1/chat/completions", endless_chat(true));
  ASSERT_TRUE(fixture.wait_running());
  EXPECT_EQ(fixture.model.engine->stats().waiting, 1);
  client.close();
  EXPECT_TRUE(fixture.wait_idle());
}

TEST(Lifecycle, ASlowReaderIsBoundedAndThenDropped) {
  auto engine = endless_engine();
  engine.token_delay = std::chrono::microseconds(0);
  ServerOptions options;
  options.stream_queue_bytes = 100'000;
  ServerFixture fixture(engine, options);
  RawClient client(fixture.port(), 4096);
  client.post("/v1/chat/completions", endless_chat(true));
  // The client does not read; its request must end all the same.
  for (int i = 0; i < 6000 && fixture.model.engine->stats().aborted == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(fixture.model.engine->stats().aborted, 1u);
  RawClient other(fixture.port());
  other.get("/health");
  EXPECT_THAT(other.read_reply(), StartsWith("HTTP/1.1 200"));
}

TEST(Lifecycle, RequestsHaveATotalTime) {
  ServerOptions options;
  options.request_timeout_ms = 50;
  ServerFixture fixture(endless_engine(), options);
  RawClient whole(fixture.port());
  whole.post("/v1/chat/completions", endless_chat(false));
  EXPECT_THAT(whole.read_reply(), StartsWith("HTTP/1.1 504"));
  RawClient stream(fixture.port());
  stream.post("/v1/chat/completions", endless_chat(true));
  const std::string reply = stream.read_reply();
  EXPECT_THAT(reply, HasSubstr("\"finish_reason\":\"abort\""));
  EXPECT_THAT(reply, HasSubstr("\"choices\":[],\"usage\":{"));
  EXPECT_THAT(reply, HasSubstr("data: [DONE]"));
  EXPECT_TRUE(fixture.wait_idle());
}

TEST(Lifecycle, HealthAndMetricsAnswerWhileTheTextPoolIsBusy) {
  ServerFixture fixture;
  std::mutex gate;
  gate.lock();
  for (int i = 0; i < 4; ++i) {
    fixture.context.text_pool().post([&gate] { std::lock_guard wait(gate); });
  }
  RawClient client(fixture.port());
  for (const char* path : {"/health", "/metrics", "/ready", "/v1/models"}) {
    client.get(path);
    EXPECT_THAT(client.read_reply(), StartsWith("HTTP/1.1 200")) << path;
  }
  gate.unlock();
}

TEST(Lifecycle, DrainLetsRunningRequestsFinishAndTakesNoNewOnes) {
  auto engine = endless_engine();
  ServerFixture fixture(engine);
  RawClient running(fixture.port()), idle(fixture.port());
  idle.get("/health");
  idle.read_reply();
  running.post("/v1/chat/completions",
               R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":300,"stream":true,)"
               R"("ignore_eos":true})");
  EXPECT_THAT(running.read_until("\n\n"), HasSubstr("HTTP/1.1 200"));
  fixture.server->drain(std::chrono::minutes(1));
  EXPECT_TRUE(idle.at_end());
  const std::string rest = running.rest();
  EXPECT_THAT(rest, HasSubstr("\"finish_reason\":\"length\""));
  EXPECT_THAT(rest, HasSubstr("data: [DONE]"));
  fixture.thread.join();  // run() returns by itself
  EXPECT_FALSE(RawClient(fixture.port()).connected());
}

TEST(Lifecycle, AHalfArrivedRequestDoesNotHoldUpTheDrain) {
  ServerFixture fixture(endless_engine());
  RawClient half(fixture.port());
  half.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  for (int i = 0; i < 200; ++i) {  // until the server has read what there is
    RawClient other(fixture.port());
    other.get("/health");
    if (other.read_reply().find("200") != std::string::npos && i > 2) break;
  }
  fixture.server->drain(std::chrono::hours(1));
  EXPECT_THAT(half.rest(), StartsWith("HTTP/1.1 408"));
  fixture.thread.join();  // within the test's own time limit, not after an hour
}

TEST(Lifecycle, AfterTheGraceTimeRequestsAreAborted) {
  ServerFixture fixture(endless_engine());
  RawClient stream(fixture.port()), whole(fixture.port());
  stream.post("/v1/chat/completions", endless_chat(true));
  EXPECT_THAT(stream.read_until("\n\n"), HasSubstr("HTTP/1.1 200"));
  whole.post("/v1/chat/completions", endless_chat(false));
  for (int i = 0; i < 6000 && fixture.model.engine->stats().running < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fixture.server->drain(std::chrono::milliseconds(20));
  EXPECT_THAT(stream.rest(), HasSubstr("\"finish_reason\":\"abort\""));
  EXPECT_THAT(whole.rest(), StartsWith("HTTP/1.1 503"));
  fixture.thread.join();
}

TEST(Lifecycle, StopCutsEverything) {
  ServerFixture fixture(endless_engine());
  RawClient client(fixture.port());
  client.post("/v1/chat/completions", endless_chat(true));
  client.read_until("\n\n");
  fixture.server->stop();
  fixture.thread.join();
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(fixture.wait_idle());
}

}  // namespace
}  // namespace wok
