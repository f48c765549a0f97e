// A server on a free loopback port, with a fake model.
#pragma once

#include <cstdlib>
#include <memory>
#include <thread>

#include "server/http_server.h"
#include "tests/support/fake_model.h"
#include "tests/support/raw_client.h"

namespace wok::test {

struct ServerFixture {
  explicit ServerFixture(FakeEngineOptions engine = {}, ServerOptions options = {})
      : model(std::move(engine)) {
    context.set_model(&model.served);
    options.port = 0;
    auto created = HttpServer::create(std::move(options), context);
    if (!created.ok()) std::abort();
    server = std::move(created).value();
    thread = std::thread([this] { server->run(); });
  }
  ~ServerFixture() {
    if (thread.joinable()) {
      server->stop();
      thread.join();
    }
    context.stop();
  }

  uint16_t port() const { return server->port(); }
  bool wait_idle() {
    for (int i = 0; i < 6000 && !model.engine->idle(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return model.engine->idle();
  }
  bool wait_running() {
    for (int i = 0; i < 6000 && model.engine->idle(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return !model.engine->idle();
  }

  ApiContext context;
  FakeModel model;
  std::unique_ptr<HttpServer> server;
  std::thread thread;
};

// An engine whose answers do not end by themselves within a test.
inline FakeEngineOptions endless_engine() {
  FakeEngineOptions options;
  options.context_tokens = 100'000'000;
  options.token_delay = std::chrono::milliseconds(1);
  return options;
}
inline std::string endless_chat(bool stream) {
  return std::string(R"({"messages":[{"role":"user","content":"hi"}],"ignore_eos":true,)") +
         R"("stream_options":)" + (stream ? R"({"include_usage":true})" : "null") +
         R"(,"stream":)" + (stream ? "true" : "false") + "}";
}

}  // namespace wok::test
