// What an endpoint sees of HTTP: a request that has arrived whole, and a writer for its reply.
// Nothing here knows sockets; the server room implements ResponseWriter, tests have their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wok {

struct ApiRequest {
  std::string method;  // "GET", "POST" …; HEAD arrives as GET, the server drops the body
  std::string path;    // percent-decoded, without the query
  std::string body;
  int64_t arrived_ns = 0;  // Clock::steady_ns when the request had arrived
};

struct ApiReply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;  // besides type, length, connection
};

enum class CancelReason {
  kDisconnect,  // the client is gone; nothing written will be read
  kTimeout,     // the request's total time is over; a short reply may still be sent
  kShutdown,    // the grace time of a drain is over; a short reply may still be sent
};

// One reply: either reply(), or begin_stream(), chunk()…, end_stream(). Every function may be
// called from any thread and none blocks: bytes are queued and the I/O threads send them. A writer
// that is destroyed before its reply was complete makes the server answer 500 or cut the stream.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual void reply(ApiReply reply) = 0;

  virtual void begin_stream(std::string_view content_type) = 0;
  // False: the client is gone, or reads so slowly that its queue was full and it was dropped.
  virtual bool chunk(std::string_view bytes) = 0;
  virtual void end_stream() = 0;

  virtual bool closed() const = 0;

  // `cancel` is called at most once a reason, on an I/O thread, never from inside another function
  // of this writer; if the client is already gone, at once and on the caller's thread. It is
  // dropped, uncalled, when the reply is complete.
  virtual void on_cancel(std::function<void(CancelReason)> cancel) = 0;
};

}  // namespace wok
