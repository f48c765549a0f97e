// What speculation brings: the same requests with --speculate off and lookup, in turns, on a text
// that is repeated with small changes (greedy) and on free chat (temperature 0.8, several seeds).
// Prints one JSON line a workload; exits 1 when a token differs.
//
//   speculation_bench MODEL.gguf [--draft-model SMALL.gguf] [--rounds N] [--tokens N]
//                     [--draft-tokens N] [--streams N]
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "api/served_model.h"

namespace wok {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kText =
    "The harbour of Velmora lies at the mouth of the river Ansa, where the hills come down to the "
    "sea. In the year 1612 the council of the town decided to build a new wall, for the old one "
    "had "
    "been broken by two winters of storms. The work took nine years. Every family gave one day of "
    "labour in the week, and those who had carts and oxen brought stone from the quarry at Red "
    "Hill. When it was finished the wall was twenty feet high and had three gates: the Fish Gate, "
    "the Salt Gate and the Gate of the Lantern. At night a lamp burned above each of them, and the "
    "watchmen called the hours from tower to tower.\n\nTrade came back slowly. The first ships "
    "brought wool, copper and dried fruit; later came glass from the south, paper, and books in "
    "four languages. A printer by the name of Jonas Adelmar opened a shop behind the market in "
    "1640. He printed calendars, sermons and a small weekly sheet with the prices of grain, which "
    "was read aloud in the taverns. His daughter Clara kept the accounts. After his death she ran "
    "the shop for thirty years and printed the first map of the coast that showed every rock and "
    "sandbank between Velmora and the Cape of Geese.\n\nThe map made the town rich. Captains who "
    "had feared the shallow water now came in even at low tide, and the harbour had to be made "
    "larger twice. A school for pilots was founded in 1702. It stood beside the Salt Gate and had "
    "room for forty boys, who learned to read the stars, the currents and the colour of the water. "
    "The oldest of their logbooks is still kept in the town hall, in a case of oak and glass.";

constexpr const char* kQuestions[] = {
    "Tell me a story about a lighthouse keeper who finds a strange bottle.",
    "What should I think about before I buy a used bicycle?",
    "Explain to a child why the sky is blue.",
    "Write a letter to a friend about a journey through the mountains."};

class Sink final : public EventSink {
 public:
  void on_event(const Event& event) noexcept override {
    const std::lock_guard lock(mutex_);
    if (event.token >= 0) tokens_.push_back(event.token);
    if (tokens_.size() == 1) first_ = Clock::now();
    if (event.finish == FinishReason::kNone) return;
    last_ = Clock::now();
    done_ = true;
    wake_.notify_one();
  }
  std::vector<int32_t> wait() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return done_; });
    return tokens_;
  }
  double decode_s() const { return std::chrono::duration<double>(last_ - first_).count(); }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<int32_t> tokens_;
  Clock::time_point first_, last_;
  bool done_ = false;
};

struct Sample {
  std::vector<std::vector<int32_t>> tokens;
  double seconds = 0;  // of decoding, of the slowest stream
  int64_t drafted = 0, accepted = 0, steps = 0;
};

struct Options {
  std::string path, draft_path;
  int32_t rounds = 3, tokens = 512, draft_tokens = 7, streams = 1;
};

std::vector<int32_t> prompt_of(const ServedModel& model, const std::string& question) {
  ChatTemplateInput input;
  input.messages = {{{"role", "user"}, {"content", question}}};
  auto text = model.chat_template->render(input);
  return std::move(model.tokenizer->encode(*text, true, true)).value();
}

Sample run_once(ServedModel& model, const std::string& question, const SamplingParams& sampling,
                const Options& options) {
  const EngineStats before = model.engine->stats();
  std::vector<std::shared_ptr<Sink>> sinks;
  for (int32_t i = 0; i < options.streams; ++i) {
    Request request;
    request.prompt = prompt_of(model, question);
    request.sampling = sampling;
    request.sampling.seed += static_cast<uint64_t>(i);
    request.max_new_tokens = options.tokens;
    request.sink = sinks.emplace_back(std::make_shared<Sink>());
    if (!model.engine->submit(std::move(request)).ok()) std::abort();
  }
  Sample sample;
  for (const auto& sink : sinks) {
    sample.tokens.push_back(sink->wait());
    sample.seconds = std::max(sample.seconds, sink->decode_s());
  }
  while (model.engine->stats().running > 0) std::this_thread::yield();
  const EngineStats after = model.engine->stats();
  sample.drafted = static_cast<int64_t>(after.drafted_tokens - before.drafted_tokens);
  sample.accepted =
      static_cast<int64_t>(after.accepted_draft_tokens - before.accepted_draft_tokens);
  sample.steps = static_cast<int64_t>(after.steps - before.steps);
  return sample;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Both engines take turns, so that what else the machine does meets them alike.
bool compare(const char* name, const std::string& question, const SamplingParams& sampling,
             ServedModel& off, ServedModel& on, const Options& options) {
  std::vector<double> off_rate, on_rate, ratio;
  Sample with;
  bool same = true;
  for (int32_t round = 0; round < options.rounds; ++round) {
    Sample without;
    if (round % 2 == 0) without = run_once(off, question, sampling, options);
    with = run_once(on, question, sampling, options);
    if (round % 2 == 1) without = run_once(off, question, sampling, options);
    same = same && with.tokens == without.tokens;
    double tokens = 0;
    for (const auto& stream : with.tokens) tokens += static_cast<double>(stream.size() - 1);
    off_rate.push_back(tokens / without.seconds);
    on_rate.push_back(tokens / with.seconds);
    ratio.push_back(without.seconds / with.seconds);
  }
  std::printf(
      "{\"workload\": \"%s\", \"seed\": %d, \"streams\": %d, \"tokens\": %zu, "
      "\"off_tokens_per_s\": "
      "%.1f, \"on_tokens_per_s\": %.1f, \"ratio\": %.3f, \"drafted\": %lld, \"accepted\": %lld, "
      "\"steps\": %lld, \"same_tokens\": %s}\n",
      name, static_cast<int>(sampling.seed), options.streams, with.tokens[0].size(),
      median(off_rate), median(on_rate), median(ratio), static_cast<long long>(with.drafted),
      static_cast<long long>(with.accepted), static_cast<long long>(with.steps),
      same ? "true" : "false");
  std::fflush(stdout);
  return same;
}

std::unique_ptr<ServedModel> load(const Options& options, Speculation speculation) {
  LoadOptions load;
  load.engine.context_tokens = 4096;
  load.engine.speculation = speculation;
  load.engine.draft_tokens = options.draft_tokens;
  if (speculation != Speculation::off) load.draft_path = options.draft_path;
  auto model = load_model(options.path, "model", load);
  if (model.ok()) return std::move(model).value();
  std::fprintf(stderr, "error: %s\n", model.error().message.c_str());
  std::exit(1);
}

int run(const Options& options) {
  const auto off = load(options, Speculation::off), on = load(options, Speculation::lookup);
  const std::string ask = std::string(kText) + "\n\nRepeat the text above word for word";
  SamplingParams greedy;
  greedy.temperature = 0;
  bool same = compare("repeat", ask + ".", greedy, *off, *on, options);
  same = compare("edit", ask + ", but call the town Westport instead of Velmora.", greedy, *off,
                 *on, options) &&
         same;
  SamplingParams chat;
  chat.temperature = 0.8f;
  for (size_t i = 0; i < std::size(kQuestions); ++i) {
    chat.seed = i + 1;
    same = compare("chat", kQuestions[i], chat, *off, *on, options) && same;
  }
  return same ? 0 : 1;
}

}  // namespace
}  // namespace wok

int main(int argc, char** argv) {
  wok::Options options;
  bool usage = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    int32_t* number = arg == "--rounds"         ? &options.rounds
                      : arg == "--tokens"       ? &options.tokens
                      : arg == "--draft-tokens" ? &options.draft_tokens
                      : arg == "--streams"      ? &options.streams
                                                : nullptr;
    if (arg == "--draft-model" && i + 1 < argc) {
      options.draft_path = argv[++i];
    } else if (number != nullptr && i + 1 < argc) {
      *number = std::atoi(argv[++i]);
      usage = usage || *number < 1;
    } else if (number == nullptr && options.path.empty() && arg[0] != '-') {
      options.path = arg;
    } else {
      usage = true;
    }
  }
  if (usage || options.path.empty() || options.tokens < 2) {
    std::fprintf(stderr,
                 "usage: speculation_bench MODEL.gguf [--draft-model SMALL.gguf] [--rounds N] "
                 "[--tokens N] [--draft-tokens N] [--streams N]\n");
    return 2;
  }
  return wok::run(options);
}
