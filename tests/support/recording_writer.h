// A ResponseWriter for tests: keeps what was written, and lets a test wait for the end, cancel, or
// play a client that is gone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "api/http.h"

namespace wok::test {

class RecordingWriter : public ResponseWriter {
 public:
  void reply(ApiReply reply) override {
    std::lock_guard lock(mutex_);
    reply_ = std::move(reply);
    done_ = true;
    changed_.notify_all();
  }
  void begin_stream(std::string_view) override {
    std::lock_guard lock(mutex_);
    streaming_ = true;
  }
  bool chunk(std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    if (gone_) return false;
    stream_ += bytes;
    changed_.notify_all();
    return true;
  }
  void end_stream() override {
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  bool closed() const override {
    std::lock_guard lock(mutex_);
    return gone_;
  }
  void on_cancel(std::function<void(CancelReason)> cancel) override {
    std::lock_guard lock(mutex_);
    cancel_ = std::move(cancel);
    changed_.notify_all();
  }

  // The client goes away, or time or grace are over.
  void cancel(CancelReason reason) {
    std::function<void(CancelReason)> cancel;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPatience, [this] { return cancel_ != nullptr; });
      gone_ = reason == CancelReason::kDisconnect;
      cancel = cancel_;
    }
    if (cancel) cancel(reason);
  }

  // False: no end within a minute.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return done_; });
  }
  bool wait_for_chunk() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return !stream_.empty(); });
  }

  // After wait().
  const ApiReply& whole() const { return reply_; }
  nlohmann::json json() const { return nlohmann::json::parse(reply_.body); }
  bool streamed() const { return streaming_; }
  const std::string& stream() const { return stream_; }
  // The stream's events; "[DONE]" as a string.
  std::vector<nlohmann::json> events() const {
    std::vector<nlohmann::json> events;
    size_t begin = 0;
    for (size_t end = 0; (end = stream_.find("\n\n", begin)) != std::string::npos;
         begin = end + 2) {
      const std::string event = stream_.substr(begin, end - begin);
      if (!event.starts_with("data: ")) {
        events.push_back("not an event: " + event);
      } else if (event == "data: [DONE]") {
        events.push_back("[DONE]");
      } else {
        events.push_back(nlohmann::json::parse(event.substr(6)));
      }
    }
    return events;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(60);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ApiReply reply_;
  std::string stream_;
  bool streaming_ = false, done_ = false, gone_ = false;
  std::function<void(CancelReason)> cancel_;
};

}  // namespace wok::test
