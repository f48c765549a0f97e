// Events from the step thread to the output thread: one ring of fixed size, single producer, single
// consumer, no lock and no allocation. When it is full the producer waits: the consumer only does
// text work and never blocks on a socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/request.h"

namespace wok {

class Outbox {
 public:
  Outbox();
  // Delivers what is left, then ends the output thread.
  ~Outbox();

  // Step thread only. The sink of a request lives at least until its finishing event, which carries
  // the last reference.
  void push(EventSink* sink, const Event& event);
  void push_last(std::shared_ptr<EventSink> sink, const Event& event);
  // Makes everything pushed so far visible; once a step.
  void flush();

 private:
  struct Slot {
    EventSink* sink = nullptr;
    std::shared_ptr<EventSink> last;
    Event event;
  };
  static constexpr uint32_t kSlots = 4096;  // power of two

  Slot& claim();
  void consume();

  std::vector<Slot> slots_;
  uint32_t pushed_ = 0;                        // producer's own count
  alignas(64) std::atomic<uint32_t> head_{0};  // visible to the consumer
  alignas(64) std::atomic<uint32_t> tail_{0};  // consumed
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace wok
