// One request's way through the engine: submits its choices, turns their events into text, chunks
// and the final reply, and aborts them when the client goes, the time is over or a stop string is
// complete.
//
// Threads: start() on the text pool; events on the engine's output thread; cancellation on an I/O
// thread. They meet under one mutex, held for as long as one token's text takes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/api_context.h"
#include "api/choice.h"
#include "api/generate_params.h"
#include "api/http.h"
#include "api/reply_format.h"

namespace wok {

struct GenerationSpec {
  GenerateParams params;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echo;  // text in front of each prompt's answers; empty: none
  std::unique_ptr<ReplyFormat> format;
  int64_t arrived_ns = 0;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Answers on `writer` sooner or later, whatever happens. The engine keeps the object alive until
  // its last event.
  static void start(ApiContext& context, ServedModel& served, GenerationSpec spec,
                    std::shared_ptr<ResponseWriter> writer);

  Generation(ApiContext& context, ServedModel& served, GenerationSpec spec,
             std::shared_ptr<ResponseWriter> writer);

 private:
  class Sink;

  bool submit_all();
  void open();
  void on_event(size_t index, const Event& event);
  void handle(Choice& choice, const Event& event);
  void cancel(CancelReason reason);
  void abort_all();
  void fail(const ApiError& error);
  void send_part(Choice& choice);
  void finish();
  void finish_stream();
  void finish_whole();
  Usage usage() const;
  ApiError abort_error() const;

  ApiContext& context_;
  ServedModel& served_;
  const GenerationSpec spec_;

  std::mutex mutex_;
  std::shared_ptr<ResponseWriter> writer_;  // null once the reply is complete
  std::vector<Choice> choices_;
  std::vector<RequestId> ids_;                   // submitted so far
  std::vector<std::pair<size_t, Event>> early_;  // events that came before open()
  bool opened_ = false;
  std::optional<CancelReason> cancelled_;
  size_t finished_ = 0;
  std::string out_;
};

}  // namespace wok
