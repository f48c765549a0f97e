#include "api/generation.h"

#include <fmt/format.h>

namespace wok {

// What the engine holds: keeps the generation alive and remembers which choice it is.
class Generation::Sink : public EventSink {
 public:
  Sink(std::shared_ptr<Generation> generation, size_t index)
      : generation_(std::move(generation)), index_(index) {}
  void on_event(const Event& event) noexcept override { generation_->on_event(index_, event); }

 private:
  const std::shared_ptr<Generation> generation_;
  const size_t index_;
};

void Generation::start(ApiContext& context, ServedModel& served, GenerationSpec spec,
                       std::shared_ptr<ResponseWriter> writer) {
  auto generation =
      std::make_shared<Generation>(context, served, std::move(spec), std::move(writer));
  // Weak, for the writer must not keep a generation alive that keeps the writer.
  generation->writer_->on_cancel([weak = std::weak_ptr(generation)](CancelReason reason) {
    if (auto strong = weak.lock()) strong->cancel(reason);
  });
  if (generation->submit_all()) generation->open();
}

Generation::Generation(ApiContext& context, ServedModel& served, GenerationSpec spec,
                       std::shared_ptr<ResponseWriter> writer)
    : context_(context), served_(served), spec_(std::move(spec)), writer_(std::move(writer)) {
  static const std::string kNoEcho;
  choices_.reserve(spec_.prompts.size() * spec_.params.n);
  for (size_t prompt = 0; prompt < spec_.prompts.size(); ++prompt) {
    const std::string& echo = spec_.echo.empty() ? kNoEcho : spec_.echo[prompt];
    for (int i = 0; i < spec_.params.n; ++i) {
      choices_.emplace_back(static_cast<int>(choices_.size()), prompt, *served_.tokenizer,
                            spec_.params, echo);
    }
  }
}

bool Generation::submit_all() {
  const int32_t n_ctx = served_.context_tokens();
  std::vector<int32_t> limits;
  for (const auto& prompt : spec_.prompts) {
    const auto limit =
        output_limit(static_cast<int64_t>(prompt.size()), spec_.params.max_tokens, n_ctx);
    if (limit.error) {
      fail(*limit.error);
      return false;
    }
    limits.push_back(limit.max_new_tokens);
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    const size_t prompt = choices_[i].prompt();
    Request request;
    request.prompt = spec_.prompts[prompt];
    request.sampling = spec_.params.sampling;
    request.sampling.seed += i - prompt * spec_.params.n;
    request.max_new_tokens = limits[prompt];
    request.stop_token_ids = spec_.params.stop_token_ids;
    request.priority = spec_.params.priority;
    request.prefix_namespace = spec_.params.prefix_namespace;
    request.sink = std::make_shared<Sink>(shared_from_this(), i);
    auto id = served_.engine->submit(std::move(request));
    if (!id.ok()) {
      fail(to_api_error(id.error()));
      return false;
    }
    std::lock_guard lock(mutex_);
    ids_.push_back(*id);
    if (cancelled_) served_.engine->abort(*id);
  }
  return true;
}

void Generation::open() {
  std::lock_guard lock(mutex_);
  opened_ = true;
  if (spec_.params.stream && writer_ != nullptr) writer_->begin_stream("text/event-stream");
  for (const auto& [index, event] : early_) handle(choices_[index], event);
  early_.clear();
}

void Generation::on_event(size_t index, const Event& event) {
  std::lock_guard lock(mutex_);
  if (opened_) {
    handle(choices_[index], event);
  } else {
    early_.emplace_back(index, event);
  }
}

void Generation::handle(Choice& choice, const Event& event) {
  Metrics& metrics = context_.metrics();
  if (event.finish != FinishReason::kNone) metrics.engine_times(event);
  if (choice.finished()) return;
  const int64_t now_ns = context_.clock().steady_ns();
  if (event.token >= 0) {
    if (choice.last_token_ns == 0) {
      metrics.first_token(now_ns - spec_.arrived_ns);
    } else {
      metrics.next_token(now_ns - choice.last_token_ns);
    }
    choice.last_token_ns = now_ns;
  }
  const bool finished = choice.feed(event, *spec_.format);
  if (finished) {
    if (event.finish == FinishReason::kNone) served_.engine->abort(event.request);
    metrics.finished(choice.finish(), now_ns - spec_.arrived_ns);
  }
  if (spec_.params.stream && choice.ready()) send_part(choice);
  if (finished && ++finished_ == choices_.size()) finish();
}

void Generation::send_part(Choice& choice) {
  if (writer_ == nullptr) return;
  out_.clear();
  if (choice.finish() == FinishReason::kError) {
    out_ =
        "data: " +
        error_json({.status = 500, .message = "the engine could not go on; see the server's log"}) +
        "\n\n";
  } else {
    spec_.format->append_chunk(choice.part(spec_.prompts[choice.prompt()]), out_);
  }
  choice.sent();
  if (!writer_->chunk(out_)) abort_all();
}

void Generation::cancel(CancelReason reason) {
  std::lock_guard lock(mutex_);
  if (!cancelled_) cancelled_ = reason;
  abort_all();
}

void Generation::abort_all() {
  for (const RequestId id : ids_) served_.engine->abort(id);
}

void Generation::fail(const ApiError& error) {
  std::lock_guard lock(mutex_);
  abort_all();
  writer_->reply(error_reply(error));
  writer_ = nullptr;
}

void Generation::finish() {
  if (writer_ == nullptr) return;
  if (spec_.params.stream) {
    finish_stream();
  } else {
    finish_whole();
  }
  writer_ = nullptr;
}

void Generation::finish_stream() {
  out_.clear();
  if (spec_.params.include_usage) spec_.format->append_usage_chunk(usage(), out_);
  out_ += "data: [DONE]\n\n";
  writer_->chunk(out_);
  writer_->end_stream();
}

void Generation::finish_whole() {
  std::vector<ChoicePart> parts;
  for (const Choice& choice : choices_) {
    if (choice.finish() == FinishReason::kAbort) return writer_->reply(error_reply(abort_error()));
    if (choice.finish() == FinishReason::kError) {
      return writer_->reply(error_reply(
          {.status = 500, .message = "the engine could not go on; see the server's log"}));
    }
    parts.push_back(choice.part(spec_.prompts[choice.prompt()]));
  }
  ApiReply reply;
  reply.body = spec_.format->whole(parts, usage());
  writer_->reply(std::move(reply));
}

// A prompt counts once, however many choices it has; so do its cached tokens, as the first choice
// met them (the others find the first one's prefix).
Usage Generation::usage() const {
  Usage usage;
  for (const auto& prompt : spec_.prompts) usage.prompt_tokens += prompt.size();
  for (size_t i = 0; i < choices_.size(); ++i) {
    usage.completion_tokens += choices_[i].generated_tokens();
    if (i % spec_.params.n == 0) usage.cached_tokens += choices_[i].cached_tokens();
  }
  return usage;
}

ApiError Generation::abort_error() const {
  if (cancelled_ == CancelReason::kTimeout) {
    return {.status = 504,
            .message = "the request took longer than the server's --request-timeout",
            .param = "",
            .code = "timeout"};
  }
  if (cancelled_ == CancelReason::kShutdown) return draining_error();
  return {.status = 503, .message = "the request was aborted", .param = "", .code = "aborted"};
}

}  // namespace wok
