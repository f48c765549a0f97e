// The ResponseWriter of one request of a session. Internal to the server room.
#pragma once

#include "server/session.h"

namespace wok {

class Session::Writer : public ResponseWriter {
 public:
  Writer(std::shared_ptr<Session> session, uint64_t number)
      : session_(std::move(session)), number_(number) {}
  ~Writer() override { session_->abandon(number_); }

  void reply(ApiReply reply) override { session_->write_reply(number_, reply); }
  void begin_stream(std::string_view content_type) override {
    session_->write_stream_head(number_, content_type);
  }
  bool chunk(std::string_view bytes) override { return session_->write_chunk(number_, bytes); }
  void end_stream() override { session_->write_end(number_); }
  bool closed() const override { return session_->is_closed(number_); }
  void on_cancel(std::function<void(CancelReason)> cancel) override {
    session_->set_cancel(number_, cancel);
  }

 private:
  const std::shared_ptr<Session> session_;
  const uint64_t number_;
};

}  // namespace wok
