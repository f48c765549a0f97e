#include "engine/outbox.h"

#include "base/short_slices.h"

namespace wok {

Outbox::Outbox() : slots_(kSlots), thread_([this] { consume(); }) {}

Outbox::~Outbox() {
  stop_.store(true);
  ++pushed_;  // an empty slot wakes the consumer; it carries no sink
  head_.store(pushed_);
  head_.notify_one();
  thread_.join();
}

Outbox::Slot& Outbox::claim() {
  uint32_t tail = tail_.load(std::memory_order_acquire);
  while (pushed_ - tail >= kSlots - 1) {
    flush();
    tail_.wait(tail, std::memory_order_acquire);
    tail = tail_.load(std::memory_order_acquire);
  }
  return slots_[pushed_++ % kSlots];
}

void Outbox::push(EventSink* sink, const Event& event) {
  Slot& slot = claim();
  slot.sink = sink;
  slot.event = event;
}

void Outbox::push_last(std::shared_ptr<EventSink> sink, const Event& event) {
  Slot& slot = claim();
  slot.sink = sink.get();
  slot.last = std::move(sink);
  slot.event = event;
}

void Outbox::flush() {
  if (head_.load(std::memory_order_relaxed) == pushed_) return;
  head_.store(pushed_, std::memory_order_release);
  head_.notify_one();
}

void Outbox::consume() {
  ask_for_short_slices();
  uint32_t tail = 0;
  for (;;) {
    const uint32_t head = head_.load(std::memory_order_acquire);
    if (head == tail) {
      head_.wait(head, std::memory_order_acquire);
      continue;
    }
    while (tail != head) {
      Slot& slot = slots_[tail % kSlots];
      if (slot.sink != nullptr) slot.sink->on_event(slot.event);
      slot.sink = nullptr;
      slot.last.reset();
      ++tail;
      tail_.store(tail, std::memory_order_release);
      tail_.notify_one();
    }
    if (stop_.load() && head_.load() == tail) return;
  }
}

}  // namespace wok
