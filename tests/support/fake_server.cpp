// wok's server on a fake engine: wok_fake_server [port] [token delay in µs]. For trying clients.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "server/http_server.h"
#include "tests/support/fake_model.h"

int main(int argc, char** argv) {
  using namespace wok;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  ServerOptions options;
  options.port = static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
  test::FakeEngineOptions engine;
  engine.token_delay = std::chrono::microseconds(argc > 2 ? std::atoi(argv[2]) : 2000);

  ApiContext context;
  test::FakeModel model(engine);
  context.set_model(&model.served);
  auto server = HttpServer::create(options, context);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%d\n", (*server)->port());
  std::fflush(stdout);
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    (*server)->drain(std::chrono::seconds(5));
  });
  (*server)->run();
  waiter.join();
  context.stop();
  return 0;
}
