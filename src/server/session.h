// One connection. Internal to the server room: only its .cpp files include Beast and Asio.
//
// Reading and writing run on the connection's strand. One read is pending at any time but while a
// request is parsed: between requests it waits for the next one, during a request it notices that
// the client is gone, after the last reply it swallows what the client still sends.
//
// ResponseWriters reach a session from other threads: bytes go into queued_ under the mutex, and
// the strand is told to flush.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/api_context.h"
#include "api/endpoint.h"
#include "api/http.h"
#include "server/server_options.h"

namespace wok {

namespace asio = boost::asio;

class Session;

// What sessions need of the server. Called from sessions' strands.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual const ServerOptions& options() const = 0;
  virtual ApiContext& context() = 0;
  virtual void ended(Session* session) = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Strand = asio::strand<asio::io_context::executor_type>;
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Strand>;

  Session(Socket socket, std::shared_ptr<SessionHost> host);

  // Any thread.
  void start();
  void refuse();                     // over max_connections: 503 and close
  void last_request();               // close when idle, or after the current reply
  void cancel(CancelReason reason);  // the current request, if there is one
  void close();

 private:
  class Writer;
  enum class State { kIdle, kParsing, kInFlight, kLinger, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // session.cpp, on the strand: the life of the connection.
  void next_request();
  void read();
  void on_read(boost::system::error_code error, size_t bytes);
  void arm(asio::steady_timer& timer, int64_t timeout_ms, void (Session::*late)());
  void on_request_timeout();
  void linger();
  void close_now();

  // session_request.cpp, on the strand: from a request's first byte to its dispatch.
  void read_header();
  void on_header(boost::system::error_code error);
  bool reply_early(const std::string& path);
  void read_body();
  void on_body(boost::system::error_code error);
  void parse_failed(boost::system::error_code error);
  void dispatch_request(ApiRequest request);
  std::shared_ptr<Writer> begin_request();
  void reply_and_close(const ApiReply& reply);
  void on_parse_timeout();

  // session_write.cpp. On the strand:
  void flush();
  void write_some();
  void reply_complete();
  // Any thread, for the writer of request `number`; a stale number is ignored.
  void write_reply(uint64_t number, const ApiReply& reply);
  void write_stream_head(uint64_t number, std::string_view content_type);
  bool write_chunk(uint64_t number, std::string_view bytes);
  void write_end(uint64_t number);
  void abandon(uint64_t number);
  bool is_closed(uint64_t number);
  void set_cancel(uint64_t number, const std::function<void(CancelReason)>& cancel);
  void schedule_flush();  // mutex held

  const std::shared_ptr<SessionHost> host_;
  Strand strand_;
  Socket socket_;
  asio::steady_timer read_timer_, write_timer_, request_timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  const Endpoint* endpoint_ = nullptr;
  std::string path_;
  State state_ = State::kIdle;
  bool reading_ = false;
  size_t swallowed_ = 0;  // bytes read while lingering
  std::string writing_;   // what the socket is being given
  size_t written_ = 0;    // of it

  std::mutex mutex_;  // for what follows
  std::string queued_;
  size_t unsent_ = 0;    // bytes of writing_ not yet taken
  uint64_t number_ = 0;  // of the current request
  bool in_flight_ = false, replying_ = false, complete_ = false;
  bool flushing_ = false, closed_ = false;
  bool keep_alive_ = true, head_ = false, chunked_ = true;
  std::function<void(CancelReason)> cancel_;
  std::optional<CancelReason> cancelled_;
};

}  // namespace wok
