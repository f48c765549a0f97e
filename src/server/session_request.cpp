// Parsing a request, and what can go wrong with it, up to its dispatch to the api room.
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/read.hpp>

#include "api/api_error.h"
#include "server/auth.h"
#include "server/http_text.h"
#include "server/session.h"
#include "server/session_writer.h"

namespace wok {

namespace http = boost::beast::http;
using boost::system::error_code;

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

}  // namespace wok
