// HTTP/1.1 in front of the api room: sockets, limits, keys, keep-alive, streams, drain.
//
//   auto server = HttpServer::create(options, context);   // bound and listening
//   server.value()->run();                                // blocks until drained or stopped
//
// Connections are refused politely (503) over max_connections. A client that goes away, in
// whatever state its request is, has the request cancelled. Requests may be pipelined; replies come
// in order, and while a next request already waits, only writing shows that the client is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "api/api_context.h"
#include "base/result.h"
#include "server/server_options.h"

namespace wok {

class HttpServer {
 public:
  // Binds and listens, so that a taken port shows at once. `context` must outlive the server.
  // Errors: kBusy for a port in use, kInvalid for a host that is no address of this machine, kIo.
  static Result<std::unique_ptr<HttpServer>> create(ServerOptions options, ApiContext& context);
  ~HttpServer();  // run() must have returned, or never been called

  uint16_t port() const;

  // Serves on options.io_threads threads (the caller's is one of them) until drain() or stop() has
  // ended the last connection. Once.
  void run();

  // Any thread, not a signal handler. No new connections; new requests get 503; running ones go on
  // for `grace`, then are cancelled (kShutdown), and two seconds later cut off.
  void drain(std::chrono::milliseconds grace);

  // Any thread. Cuts every connection; run() returns soon.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace wok
