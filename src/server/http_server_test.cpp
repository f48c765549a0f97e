// The server over real sockets: requests well-formed and not, limits, keys, keep-alive.
#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/server_fixture.h"

namespace wok {
namespace {

using test::RawClient;
using test::ServerFixture;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kChat = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3})";
const std::string kStream =
    R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3,"stream":true})";

TEST(HttpServer, KeepsConnectionsAliveAndTakesPipelinedRequests) {
  ServerFixture fixture;
  RawClient client(fixture.port());
  client.get("/health");
  EXPECT_THAT(client.read_reply(), HasSubstr("\"status\":\"ok\""));
  client.post("/v1/chat/completions", kChat);
  client.post("/v1/chat/completions", kStream);
  client.get("/version");
  EXPECT_THAT(client.read_reply(), HasSubstr("\"chat.completion\""));
  EXPECT_THAT(client.read_reply(), HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(client.read_reply(), HasSubstr("\"version\""));
  client.get("/health", "Connection: close\r\n");
  EXPECT_THAT(client.read_reply(), HasSubstr("Connection: close"));
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, HeadAndOptions) {
  ServerFixture fixture;
  RawClient client(fixture.port());
  client.send("HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = client.read_reply(true);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, HasSubstr("Content-Length: "));
  client.send("OPTIONS /v1/completions HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string options = client.read_reply();
  EXPECT_THAT(options, StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(options, HasSubstr("Allow: POST, OPTIONS"));
  EXPECT_THAT(options, Not(HasSubstr("Access-Control")));
}

TEST(HttpServer, OldHttpGetsAStreamThatEndsWithTheConnection) {
  ServerFixture fixture;
  RawClient client(fixture.port());
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
              std::to_string(kStream.size()) + "\r\n\r\n" + kStream);
  const std::string reply = client.rest();
  EXPECT_THAT(reply, HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(reply, Not(HasSubstr("chunked")));
}

TEST(HttpServer, ExpectContinue) {
  ServerFixture fixture;
  RawClient client(fixture.port());
  client.send("POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(kChat.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(kChat);
  EXPECT_THAT(client.read_reply(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, MalformedRequestsGetA400AndDisturbNobody) {
  ServerFixture fixture;
  for (const std::string& bytes :
       {std::string("garbage\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET nowhere HTTP/1.1\r\n\r\n"), std::string("GET /%zz HTTP/1.1\r\n\r\n"),
        std::string("POST /tokenize HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("POST /tokenize HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string("POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        std::string("GET /health HTTP/1.1\r\nbad header\r\n\r\n"),
        std::string("\x16\x03\x01\x02\0\x01\0\x01\xFC\x03\x03\r\n\r\n", 15)}) {
    RawClient client(fixture.port());
    client.send(bytes);
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 4")) << bytes;
  }
  RawClient client(fixture.port());
  client.get("/health");
  EXPECT_THAT(client.read_reply(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, BodiesThatAreNoGoodJson) {
  ServerFixture fixture;
  for (const std::string body : {"", "{", "[]", "{\"messages\": \"\xFF\"}", "nul"}) {
    RawClient client(fixture.port());
    client.post("/v1/chat/completions", body);
    const std::string reply = client.read_reply();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400")) << body;
    EXPECT_THAT(reply, HasSubstr("{\"error\":{\"message\":"));
  }
}

TEST(HttpServer, SizesAreLimited) {
  ServerOptions options;
  options.body_limit = 1000;
  ServerFixture fixture({}, options);
  RawClient announced(fixture.port());
  announced.post("/tokenize", std::string(1001, 'x'));
  EXPECT_THAT(announced.rest(), StartsWith("HTTP/1.1 413"));
  RawClient chunked(fixture.port());
  chunked.send("POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3ea\r\n" +
               std::string(1002, 'x') + "\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.rest(), StartsWith("HTTP/1.1 413"));
  RawClient header(fixture.port());
  header.get("/health", "X: " + std::string(20'000, 'x') + "\r\n");
  EXPECT_THAT(header.rest(), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServer, SlowRequestsTimeOut) {
  ServerOptions options;
  options.header_timeout_ms = options.body_timeout_ms = 50;
  options.idle_timeout_ms = 100;
  ServerFixture fixture({}, options);
  RawClient half(fixture.port());
  half.send("GET /health HTT");
  EXPECT_THAT(half.rest(), StartsWith("HTTP/1.1 408"));
  RawClient body(fixture.port());
  body.send("POST /tokenize HTTP/1.1\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_THAT(body.rest(), StartsWith("HTTP/1.1 408"));
  RawClient idle(fixture.port());
  EXPECT_EQ(idle.rest(), "");
}

TEST(HttpServer, TooManyConnectionsAreToldSo) {
  ServerOptions options;
  options.max_connections = 2;
  ServerFixture fixture({}, options);
  RawClient first(fixture.port()), second(fixture.port());
  for (RawClient* client : {&first, &second}) {
    client->get("/health");
    client->read_reply();
  }
  RawClient third(fixture.port());
  EXPECT_THAT(third.rest(), StartsWith("HTTP/1.1 503"));
}

TEST(HttpServer, KeysGuardAllButHealthReadyAndVersion) {
  ServerOptions options;
  options.api_keys = {"sesame"};
  ServerFixture fixture({}, options);
  const auto get = [&](const char* path, const char* headers) {
    RawClient client(fixture.port());
    client.get(path, headers);
    return client.read_reply();
  };
  for (const char* open : {"/health", "/ready", "/version"}) {
    EXPECT_THAT(get(open, ""), StartsWith("HTTP/1.1 200")) << open;
  }
  for (const char* guarded : {"/v1/models", "/metrics", "/nope"}) {
    EXPECT_THAT(get(guarded, ""), StartsWith("HTTP/1.1 401")) << guarded;
  }
  EXPECT_THAT(get("/v1/models", ""), HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_THAT(get("/v1/models", "Authorization: Bearer wrong\r\n"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get("/v1/models", "Authorization: Bearer sesame\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ATakenPortSaysSoAndWhatToDo) {
  ServerFixture fixture;
  ServerOptions options;
  options.port = fixture.port();
  ApiContext context;
  const auto second = HttpServer::create(options, context);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(fixture.port())));
  EXPECT_THAT(second.error().message, HasSubstr("--port"));
  options.host = "no such host";
  EXPECT_EQ(HttpServer::create(options, context).error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace wok
