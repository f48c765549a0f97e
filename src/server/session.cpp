// The life of a connection: between requests, during one, after the last; time-outs; the end.
#include "server/session.h"

#include <boost/asio/post.hpp>

#include "api/api_error.h"
#include "server/session_writer.h"

namespace wok {

using boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kSwallowLimit = 64 * 1024 * 1024;
constexpr int64_t kLastRequestMs = 1000;
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
    // A request that is still arriving gets a moment, not the whole grace time: a half-open
    // connection must not hold up the end of the server.
    if (self->state_ == State::kParsing) {
      self->arm(self->read_timer_, kLastRequestMs, &Session::on_parse_timeout);
    }
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
