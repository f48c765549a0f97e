#include "app/chat/answer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <random>

#include <fmt/format.h>

#include "text/detokenizer.h"

namespace wok::app {
namespace {

using Clock = std::chrono::steady_clock;
// A base model may never end by itself; who wants more says so.
constexpr int64_t kDefaultAnswerTokens = 1024;
constexpr auto kPoll = std::chrono::milliseconds(50);

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Hands events from the engine's output thread to the thread that prints: a slow terminal never
// holds the engine up.
class EventQueue : public EventSink {
 public:
  void on_event(const Event& event) noexcept override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    ready_.notify_one();
  }
  // False when none came within kPoll.
  bool next(Event& event) {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_for(lock, kPoll, [&] { return !events_.empty(); })) return false;
    event = events_.front();
    events_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
};

Error context_full(int64_t tokens, int32_t context) {
  return too_large(fmt::format(
      "the conversation has {} tokens and the context window {}: there is no room for an answer. "
      "/clear starts afresh; --context N makes the window larger, as far as the model was trained.",
      tokens, context));
}

Result<Request> make_request(const ServedModel& model, std::vector<int32_t> prompt,
                             const ChatParameters& parameters) {
  const int32_t context = model.engine->context_tokens();
  const int64_t room = static_cast<int64_t>(context) - static_cast<int64_t>(prompt.size());
  if (room < 1) return context_full(static_cast<int64_t>(prompt.size()), context);
  if (parameters.max_tokens > room) {
    return too_large(fmt::format(
        "the prompt has {} tokens and max_tokens is {}, together more than the context window of "
        "{}. Lower --max-tokens to {} or less, or /clear the conversation.",
        prompt.size(), parameters.max_tokens, context, room));
  }
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = parameters.sampling;
  if (!parameters.seed_given) request.sampling.seed = std::random_device{}();
  request.max_new_tokens = parameters.max_tokens > 0
                               ? parameters.max_tokens
                               : static_cast<int32_t>(std::min(room, kDefaultAnswerTokens));
  return request;
}

}  // namespace

Result<std::vector<int32_t>> prompt_tokens(const ServedModel& model,
                                           const nlohmann::json& messages) {
  WOK_CHECK(!messages.empty(), "a conversation begins with a message");
  try {
    (void)messages.dump();  // throws for text that is not UTF-8
  } catch (const nlohmann::json::exception&) {
    return invalid("the prompt is not UTF-8 text");
  }
  WOK_CHECK(model.chat_template != nullptr, "load_model gives every model a template");
  ChatTemplateInput input;
  input.messages = messages;
  input.now_unix_s = std::time(nullptr);
  WOK_TRY(text, model.chat_template->render(input));
  return model.tokenizer->encode(text, /*add_special=*/true, /*parse_special=*/true);
}

Result<Answer> generate(ServedModel& model, std::vector<int32_t> prompt,
                        const ChatParameters& parameters,
                        const std::function<void(std::string_view)>& print,
                        const std::atomic<bool>& cancelled) {
  WOK_TRY(request, make_request(model, std::move(prompt), parameters));
  const auto queue = std::make_shared<EventQueue>();
  request.sink = queue;
  Answer answer;
  answer.seed = request.sampling.seed;
  std::vector<std::string> stops = parameters.stops;
  stops.insert(stops.end(), model.chat_stops.begin(), model.chat_stops.end());
  Detokenizer detokenizer(*model.tokenizer, stops);

  const auto begin = Clock::now();
  auto first = begin;
  auto last = begin;
  WOK_TRY(id, model.engine->submit(std::move(request)));
  bool aborted = false;
  std::string piece;
  const auto emit = [&] {
    if (!piece.empty()) print(piece);
    answer.text += piece;
    piece.clear();
  };
  for (Event event; answer.finish == FinishReason::kNone;) {
    if (cancelled.load() && !aborted) {
      model.engine->abort(id);
      aborted = true;
    }
    if (!queue->next(event)) continue;
    answer.finish = event.finish;
    answer.prompt_tokens = event.prompt_tokens;
    answer.cached_tokens = event.cached_tokens;
    if (event.token < 0 || detokenizer.stopped()) continue;
    last = Clock::now();
    if (answer.generated_tokens++ == 0) first = last;
    if (detokenizer.feed(event.token, piece) && event.finish == FinishReason::kNone) {
      model.engine->abort(id);  // a stop text: the engine knows only tokens
      aborted = true;
    }
    emit();
  }
  if (detokenizer.stopped()) {
    answer.finish = FinishReason::kStop;
  } else {
    detokenizer.finish(piece);
    emit();
  }
  answer.first_token_s = seconds(first - begin);
  answer.decode_s = seconds(last - first);
  if (answer.finish == FinishReason::kError) {
    return io_error("the engine could not go on with this answer; its log says why");
  }
  return answer;
}

std::string timing_line(const Answer& answer) {
  const int32_t intervals = std::max(answer.generated_tokens - 1, 0);
  const double rate = answer.decode_s > 0 ? intervals / answer.decode_s : 0;
  return fmt::format(
      "prompt {} tokens ({} cached), first token after {:.3f} s, {} tokens at {:.1f} tokens/s, "
      "seed {}",
      answer.prompt_tokens, answer.cached_tokens, answer.first_token_s, answer.generated_tokens,
      rate, answer.seed);
}

}  // namespace wok::app
