// Writing replies: any thread queues, the strand sends.
#include <boost/asio/post.hpp>

#include "api/api_error.h"
#include "server/http_text.h"
#include "server/session.h"
#include "server/session_writer.h"

namespace wok {

using boost::system::error_code;

void Session::schedule_flush() {
  if (flushing_ || closed_) return;
  flushing_ = true;
  asio::post(strand_, [self = shared_from_this()] { self->flush(); });
}

void Session::flush() {
  {
    std::lock_guard lock(mutex_);
    writing_.clear();
    written_ = 0;
    std::swap(writing_, queued_);
    unsent_ = writing_.size();
    if (writing_.empty()) {
      flushing_ = false;
      if (!in_flight_ || !complete_) return;
    }
  }
  if (state_ == State::kClosed) return;
  if (writing_.empty()) return reply_complete();
  arm(write_timer_, host_->options().write_timeout_ms, &Session::close_now);
  write_some();
}

void Session::write_some() {
  socket_.async_write_some(asio::buffer(writing_.data() + written_, writing_.size() - written_),
                           [self = shared_from_this()](error_code error, size_t bytes) {
                             if (self->state_ == State::kClosed) return;
                             if (error) return self->close_now();
                             self->written_ += bytes;
                             {
                               std::lock_guard lock(self->mutex_);
                               self->unsent_ = self->writing_.size() - self->written_;
                             }
                             if (self->written_ == self->writing_.size()) {
                               self->write_timer_.cancel();
                               return self->flush();
                             }
                             // Progress: the client has the whole time again.
                             self->arm(self->write_timer_, self->host_->options().write_timeout_ms,
                                       &Session::close_now);
                             self->write_some();
                           });
}

void Session::reply_complete() {
  std::function<void(CancelReason)> dropped;  // what it holds goes outside the lock
  bool keep_alive = false;
  {
    std::lock_guard lock(mutex_);
    in_flight_ = false;
    dropped = std::move(cancel_);
    cancel_ = nullptr;
    keep_alive = keep_alive_;
  }
  request_timer_.cancel();
  if (keep_alive) {
    next_request();
  } else {
    linger();
  }
}

void Session::write_reply(uint64_t number, const ApiReply& reply) {
  std::lock_guard lock(mutex_);
  if (number != number_ || closed_ || replying_) return;
  replying_ = complete_ = true;
  queued_ += reply_text(reply, keep_alive_, head_);
  host_->context().metrics().replied(reply.status);
  schedule_flush();
}

void Session::write_stream_head(uint64_t number, std::string_view content_type) {
  std::lock_guard lock(mutex_);
  if (number != number_ || closed_ || replying_) return;
  replying_ = true;
  queued_ += stream_head_text(content_type, keep_alive_ && chunked_, chunked_);
  host_->context().metrics().replied(200);
  schedule_flush();
}

bool Session::write_chunk(uint64_t number, std::string_view bytes) {
  std::lock_guard lock(mutex_);
  if (number != number_ || closed_ || !replying_ || complete_) return false;
  if (queued_.size() + unsent_ > host_->options().stream_queue_bytes) {
    closed_ = true;  // a reader this slow will not catch up
    asio::post(strand_, [self = shared_from_this()] { self->close_now(); });
    return false;
  }
  if (chunked_) {
    append_chunk_text(bytes, queued_);
  } else {
    queued_ += bytes;
  }
  schedule_flush();
  return true;
}

void Session::write_end(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (number != number_ || closed_ || !replying_ || complete_) return;
  complete_ = true;
  if (chunked_) queued_ += kLastChunk;
  schedule_flush();
}

// The writer was dropped. Fine when the reply is complete; otherwise whoever held it has failed.
void Session::abandon(uint64_t number) {
  bool cut = false;
  {
    std::lock_guard lock(mutex_);
    if (number != number_ || closed_ || complete_) return;
    cut = replying_;
  }
  if (cut) return close();
  write_reply(number, error_reply({.status = 500, .message = "internal error: no reply"}));
}

bool Session::is_closed(uint64_t number) {
  std::lock_guard lock(mutex_);
  return closed_ || number != number_;
}

void Session::set_cancel(uint64_t number, const std::function<void(CancelReason)>& cancel) {
  std::optional<CancelReason> already;
  {
    std::lock_guard lock(mutex_);
    if (number != number_ || closed_) {
      already = CancelReason::kDisconnect;
    } else {
      already = cancelled_;
      cancel_ = cancel;
    }
  }
  if (already) cancel(*already);
}

}  // namespace wok
