// Reading requests and noticing that the client is gone.
#include "server/session.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/read.hpp>

#include "api/api_error.h"
#include "server/auth.h"
#include "server/http_text.h"
#include "server/session_writer.h"

namespace wok {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kSwallowLimit = 64 * 1024 * 1024;
constexpr int64_t kLingerMs = 2'000;
constexpr int64_t kCancelMs = 5'000;  // for the last words of a request whose time is over

}  // namespace

Session::Session(Socket socket, std::shared_ptr<SessionHost> host)
    : host_(std::move(host)),
      strand_(socket.get_executor()),
      socket_(std::move(socket)),
      read_timer_(strand_),
      write_timer_(strand_),
      request_timer_(strand_) {}

void Session::start() {
  asio::post(strand_, [self = shared_from_this()] { self->next_request(); });
}

void Session::refuse() {
  asio::post(strand_, [self = shared_from_this()] {
    self->reply_and_close(error_reply({.status = 503,
                                       .message = "too many connections; try again later",
                                       .code = "too_many_connections"}));
  });
}

void Session::last_request() {
  asio::post(strand_, [self = shared_from_this()] {
    {
      std::lock_guard lock(self->mutex_);
      self->keep_alive_ = false;
    }
    if (self->state_ == State::kIdle) self->close_now();
  });
}

void Session::cancel(CancelReason reason) {
  asio::post(strand_, [self = shared_from_this(), reason] {
    std::function<void(CancelReason)> cancel;
    {
      std::lock_guard lock(self->mutex_);
      if (!self->in_flight_) return;
      self->cancelled_ = reason;
      cancel = self->cancel_;
    }
    if (cancel) cancel(reason);
  });
}

void Session::close() {
  asio::post(strand_, [self = shared_from_this()] { self->close_now(); });
}

void Session::next_request() {
  if (state_ == State::kClosed) return;
  state_ = State::kIdle;
  arm(read_timer_, host_->options().idle_timeout_ms, &Session::close_now);
  if (buffer_.size() > 0) {
    read_header();
  } else {
    read();
  }
}

void Session::read() {
  if (reading_) return;
  reading_ = true;
  socket_.async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](error_code error, size_t bytes) { self->on_read(error, bytes); });
}

void Session::on_read(error_code error, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return close_now();
  buffer_.commit(bytes);
  if (state_ == State::kIdle) return read_header();
  if (state_ == State::kLinger) {
    buffer_.clear();
    swallowed_ += bytes;
    if (swallowed_ > kSwallowLimit) return close_now();
    read();
  }
  // In flight: a pipelined request has begun. It waits in the buffer; no further read, so that a
  // client cannot fill memory with requests ahead of their turn.
}

void Session::read_header() {
  state_ = State::kParsing;
  {
    std::lock_guard lock(mutex_);
    head_ = false;
    chunked_ = true;
  }
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(host_->options().header_limit));
  parser_->body_limit(host_->options().body_limit);
  arm(read_timer_, host_->options().header_timeout_ms, &Session::on_parse_timeout);
  http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t) { self->on_header(error); });
}

void Session::on_header(error_code error) {
  if (state_ != State::kParsing) return;
  if (error) return parse_failed(error);
  const auto& message = parser_->get();
  const auto path = target_path({message.target().data(), message.target().size()});
  {
    std::lock_guard lock(mutex_);
    keep_alive_ = keep_alive_ && message.version() == 11 && message.keep_alive();
    head_ = message.method() == http::verb::head;
    chunked_ = message.version() == 11;
  }
  if (!path) {
    return reply_and_close(error_reply({.status = 400, .message = "malformed request target"}));
  }
  path_ = *path;
  if (reply_early(*path)) return;

  const auto expect = message[http::field::expect];
  if (expect.empty()) return read_body();
  if (!boost::beast::iequals(expect, "100-continue")) {
    return reply_and_close(
        error_reply({.status = 417, .message = "only Expect: 100-continue is understood"}));
  }
  asio::async_write(socket_, asio::buffer(kContinue),
                    [self = shared_from_this()](error_code failed, size_t) {
                      if (failed) return self->close_now();
                      if (self->state_ == State::kParsing) self->read_body();
                    });
}

// What can be said before the body has come: wrong key, path or method. The body is then not read,
// so the connection ends after the reply.
bool Session::reply_early(const std::string& path) {
  const auto& message = parser_->get();
  const std::string method(message.method_string());
  const Route route = find_route(method, path);
  const auto& keys = host_->options().api_keys;
  const auto authorization = message[http::field::authorization];
  const bool open =
      keys.empty() || (route.endpoint != nullptr && route.endpoint->open) || method == "OPTIONS";
  if (!open && !is_authorized({authorization.data(), authorization.size()}, keys)) {
    ApiReply reply = error_reply({.status = 401,
                                  .message = "this server wants an API key: send it as "
                                             "Authorization: Bearer <key>",
                                  .code = "invalid_api_key"});
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    reply_and_close(reply);
    return true;
  }
  endpoint_ = route.endpoint;
  if (method == "OPTIONS" && (path == "*" || !route.allow.empty())) {
    ApiReply reply{.status = 204, .body = {}, .content_type = {}, .headers = {}};
    if (!route.allow.empty()) reply.headers.emplace_back("Allow", route.allow);
    reply_and_close(reply);
    return true;
  }
  if (endpoint_ == nullptr) {
    reply_and_close(no_route_reply(route, method, path));
    return true;
  }
  return false;
}

void Session::read_body() {
  arm(read_timer_, host_->options().body_timeout_ms, &Session::on_parse_timeout);
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, size_t) { self->on_body(error); });
}

void Session::on_body(error_code error) {
  if (state_ != State::kParsing) return;
  if (error) return parse_failed(error);
  read_timer_.cancel();
  auto message = parser_->release();
  parser_.reset();
  ApiRequest request;
  request.method = endpoint_->method;
  request.path = std::move(path_);
  request.body = std::move(message.body());
  request.arrived_ns = host_->context().clock().steady_ns();
  dispatch_request(std::move(request));
}

void Session::dispatch_request(ApiRequest request) {
  auto writer = begin_request();
  arm(request_timer_, host_->options().request_timeout_ms, &Session::on_request_timeout);
  if (buffer_.size() == 0) read();  // a pipelined request already waits otherwise
  dispatch(host_->context(), *endpoint_, std::move(request), std::move(writer));
}

std::shared_ptr<Session::Writer> Session::begin_request() {
  state_ = State::kInFlight;
  std::lock_guard lock(mutex_);
  ++number_;
  in_flight_ = true;
  replying_ = complete_ = false;
  cancelled_.reset();
  return std::make_shared<Writer>(shared_from_this(), number_);
}

void Session::parse_failed(error_code error) {
  if (error == http::error::header_limit) {
    return reply_and_close(
        error_reply({.status = 431,
                     .message = "the request's header is larger than " +
                                std::to_string(host_->options().header_limit) + " bytes"}));
  }
  if (error == http::error::body_limit) {
    return reply_and_close(
        error_reply({.status = 413,
                     .message = "the request's body is larger than " +
                                std::to_string(host_->options().body_limit) + " bytes",
                     .code = "body_too_large"}));
  }
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream &&
                         error != http::error::partial_message;
  if (!malformed) return close_now();
  reply_and_close(
      error_reply({.status = 400, .message = "malformed HTTP request: " + error.message()}));
}

void Session::reply_and_close(const ApiReply& reply) {
  {
    std::lock_guard lock(mutex_);
    keep_alive_ = false;
  }
  read_timer_.cancel();
  begin_request()->reply(reply);
}

void Session::arm(asio::steady_timer& timer, int64_t timeout_ms, void (Session::*late)()) {
  if (timeout_ms <= 0) {
    timer.cancel();
    return;
  }
  timer.expires_after(std::chrono::milliseconds(timeout_ms));
  timer.async_wait([self = shared_from_this(), late, &timer](error_code error) {
    // A handler that was already queued when the timer was armed again is not late.
    if (error || timer.expiry() > std::chrono::steady_clock::now()) return;
    if (self->state_ != State::kClosed) ((*self).*late)();
  });
}

void Session::on_parse_timeout() {
  if (state_ != State::kParsing) return;
  state_ = State::kInFlight;
  // The pending read must end before another one may begin; it reports operation_aborted.
  error_code ignored;
  socket_.cancel(ignored);
  asio::post(strand_, [self = shared_from_this()] {
    if (self->state_ != State::kInFlight) return;
    self->reply_and_close(
        error_reply({.status = 408, .message = "the request did not arrive in time"}));
  });
}

void Session::on_request_timeout() {
  cancel(CancelReason::kTimeout);
  arm(request_timer_, kCancelMs, &Session::close_now);
}

// Closing at once while the client still sends would make its kernel throw our reply away.
void Session::linger() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  state_ = State::kLinger;
  buffer_.clear();
  arm(read_timer_, kLingerMs, &Session::close_now);
  read();
}

void Session::close_now() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  std::function<void(CancelReason)> cancel;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (in_flight_) cancel = std::move(cancel_);
    cancel_ = nullptr;
    queued_.clear();
  }
  read_timer_.cancel();
  write_timer_.cancel();
  request_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (cancel) cancel(CancelReason::kDisconnect);
  host_->ended(this);
}

}  // namespace wok
