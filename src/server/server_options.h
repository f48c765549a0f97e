// Where the server listens and what it puts up with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wok {

struct ServerOptions {
  std::string host = "127.0.0.1";  // loopback unless told otherwise
  uint16_t port = 8080;            // 0: a free one; HttpServer::port() says which
  int io_threads = 2;
  std::vector<std::string> api_keys;  // empty: no key is asked for

  size_t header_limit = 16 * 1024;          // beyond: 431
  size_t body_limit = 32 * 1024 * 1024;     // beyond: 413
  int max_connections = 1024;               // beyond: 503 and closed
  size_t stream_queue_bytes = 1024 * 1024;  // unsent bytes of a stream; beyond: dropped

  int64_t idle_timeout_ms = 75'000;    // between requests; closed
  int64_t header_timeout_ms = 15'000;  // from a request's first byte to its header's end; 408
  int64_t body_timeout_ms = 60'000;    // for the body; 408
  int64_t write_timeout_ms = 30'000;   // without a byte taken by the client; dropped
  int64_t request_timeout_ms = 0;      // from the body's end to the reply's end; 0: none
};

}  // namespace wok
