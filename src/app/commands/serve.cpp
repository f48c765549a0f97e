#include "app/commands/serve.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "api/api_context.h"
#include "base/log.h"
#include "server/auth.h"
#include "server/http_server.h"

namespace wok {
namespace {

Result<ServerOptions> server_options(const ServeOptions& options) {
  ServerOptions server;
  server.host = options.host;
  server.port = options.port;
  server.body_limit = options.max_body_bytes;
  server.max_connections = options.max_connections;
  server.request_timeout_ms = static_cast<int64_t>(options.request_timeout_s * 1e3);
  if (!options.api_key_file.empty()) {
    WOK_TRY(keys, read_key_file(options.api_key_file));
    server.api_keys = std::move(keys);
  }
  if (!options.api_key.empty()) server.api_keys.push_back(options.api_key);
  return server;
}

LoadOptions load_options(const ServeOptions& options) {
  LoadOptions load;
  load.engine.threads = options.threads;
  load.engine.context_tokens = options.context_tokens;
  load.engine.kv_bytes = options.kv_bytes;
  load.engine.max_sequences = options.max_sequences;
  load.engine.max_queued = options.max_queued;
  load.engine.token_budget = options.token_budget;
  load.engine.itl_target_ms = options.itl_target_ms;
  load.engine.prefix_cache = options.prefix_cache;
  load.engine.fast_prefill = options.fast_prefill;
  load.engine.speculation = options.speculation;
  load.engine.draft_tokens = options.draft_tokens;
  load.draft_path = options.draft_model;
  load.cache_dir = options.cache_dir;
  load.isa = options.isa;
  load.embeddings = true;
  return load;
}

// Blocks the ending signals in this thread and all it starts later, and waits for them on one of
// its own: a handler may do next to nothing, a thread anything.
class SignalThread {
 public:
  SignalThread() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGUSR1);  // our own, to end the thread
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~SignalThread() { stop(); }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  template <class OnFirst>
  void start(OnFirst on_first) {
    thread_ = std::thread([this, on_first = std::move(on_first)] {
      for (int count = 0;;) {
        int signal = 0;
        sigwait(&signals_, &signal);
        if (signal == SIGUSR1) return;
        if (++count > 1) std::_Exit(128 + signal);
        on_first();
      }
    });
  }

  // Before anything that on_first uses goes.
  void stop() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  sigset_t signals_;
  std::thread thread_;
};

void print_welcome(const ServeOptions& options, const ServedModel& model, uint16_t port) {
  const bool any = options.host == "0.0.0.0" || options.host == "::";
  const std::string host = any                                           ? "127.0.0.1"
                           : options.host.find(':') != std::string::npos ? "[" + options.host + "]"
                                                                         : options.host;
  const std::string url = fmt::format("http://{}:{}", host, port);
  const bool keys = !options.api_key.empty() || !options.api_key_file.empty();
  const char* path = "/v1/chat/completions";
  std::string body =
      R"("stream": true, "temperature": 0, "messages": [{"role": "user", "content": )"
      R"("Name three primary colours."}])";
  if (model.embedder && model.embedder->model().ranks()) {
    path = "/v1/rerank";
    body = R"("query": "What is green?", "documents": ["Grass.", "The sea.", "Snow."])";
  } else if (model.embedder) {
    path = "/v1/embeddings";
    body = R"("input": ["Grass is green.", "The sea is blue."])";
  }
  fmt::print(
      "wok serves {} at {}\n\nTry:\n  curl -N {}{} {}\\\n"
      "    -H 'Content-Type: application/json' \\\n    -d '{{\"model\": \"{}\", {}}}'\n",
      options.model_id, url, url, path, keys ? "-H \"Authorization: Bearer $WOK_API_KEY\" " : "",
      options.model_id, body);
  std::fflush(stdout);
}

}  // namespace

Result<int> run_serve(const ServeOptions& options) {
  log::configure(options.log_level);
  WOK_TRY(http_options, server_options(options));
  SignalThread signals;
  ApiContext context({.version = WOK_VERSION});
  std::unique_ptr<ServedModel> model;

  // Bound first: a taken port should not show only after a minute of loading. Until the model is
  // there, /health says "loading" and /ready 503.
  WOK_TRY(server, HttpServer::create(std::move(http_options), context));
  HttpServer& http = *server;
  const auto grace = std::chrono::milliseconds(static_cast<int64_t>(options.grace_s * 1e3));
  signals.start([&context, &http, grace] {
    if (context.model() == nullptr) std::_Exit(0);  // nothing runs yet
    log::info("draining: running requests have {} s to finish; a second signal quits at once",
              grace.count() / 1000);
    http.drain(grace);
  });
  std::thread io([&http] { http.run(); });

  auto loaded = load_model(options.model_path, options.model_id, load_options(options));
  if (!loaded.ok()) {
    signals.stop();
    http.stop();
    io.join();
    context.stop();
    return loaded.error();
  }
  model = std::move(loaded).value();
  context.set_model(model.get());
  print_welcome(options, *model, http.port());
  io.join();
  context.stop();
  model.reset();  // the engine delivers its last events while context and server still stand
  signals.stop();
  log::info("stopped");
  return 0;
}

}  // namespace wok
