// Bytes as a generation: stop strings, and the pieces that tokens write. Whatever the pieces, what
// comes out is whole characters, never taken back, and ends where the plainest code says it must;
// where the text was cut into tokens changes nothing.
//
// An input: a byte of flags (1: leave the stop in, 2: show control tokens), then lines: the stop
// strings, an empty line, and the pieces, each up to a byte of 0xFF (which no UTF-8 holds).
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_check.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace wok {
namespace {

using fuzz::demand;

constexpr size_t kMaxStopStrings = 16, kMaxText = 2048;

// Tokens are the pieces in turn; every eleventh piece is a control token.
class Pieces final : public Tokenizer {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  Result<std::vector<int32_t>> encode(std::string_view, bool, bool) const override {
    return unsupported("this tokenizer only decodes");
  }
  std::string_view piece(int32_t id, bool show_special) const override {
    if (is_control(id) && !show_special) return "";
    return pieces_[static_cast<size_t>(id)];
  }
  std::string decode(std::span<const int32_t>, bool) const override { return ""; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return -1; }
  int32_t eos_id() const override { return -1; }
  bool add_bos() const override { return false; }
  const std::vector<int32_t>& end_ids() const override { return none_; }
  bool is_control(int32_t id) const override { return id % 11 == 10; }
  int32_t id_of(std::string_view) const override { return -1; }

 private:
  std::vector<std::string> pieces_;
  std::vector<int32_t> none_;
};

std::string as_utf8(std::string bytes) {
  std::string text;
  take_whole_characters(bytes, text);
  if (!bytes.empty()) text += kReplacementCharacter;
  return text;
}

struct Case {
  bool include_stop = false, show_special = false;
  std::vector<std::string> stops, pieces;
};

Case read_case(std::string_view input) {
  Case c;
  if (input.empty()) return c;
  c.include_stop = (input[0] & 1) != 0;
  c.show_special = (input[0] & 2) != 0;
  input = input.substr(1, kMaxText);
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    // A request's stops are JSON strings, so UTF-8.
    const std::string stop = as_utf8(std::string(input.substr(0, end)));
    input.remove_prefix(std::min(end + 1, input.size()));
    if (stop.empty() || c.stops.size() == kMaxStopStrings) break;
    c.stops.push_back(stop);
  }
  while (!input.empty()) {
    const size_t end = std::min(input.find('\xFF'), input.size());
    c.pieces.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return c;
}

struct Output {
  std::string text;
  bool stopped = false;
  std::string stop = {};
  bool operator==(const Output&) const = default;
};

Output run(const Case& c, std::vector<std::string> pieces, bool show_special) {
  const Pieces tokenizer(std::move(pieces));
  Detokenizer detokenizer(tokenizer, c.stops, show_special, c.include_stop);
  Output output;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string chunk;
    const bool stopped = detokenizer.feed(id, chunk);
    demand(find_invalid_utf8(chunk) == std::string::npos, "a chunk is no UTF-8", chunk);
    demand(stopped == detokenizer.stopped(), "feed() and stopped() differ", chunk);
    demand(!output.stopped || chunk.empty(), "text after the stop", chunk);
    output.text += chunk;
    output.stopped = stopped;
  }
  std::string rest;
  detokenizer.finish(rest);
  demand(find_invalid_utf8(rest) == std::string::npos, "the rest is no UTF-8", rest);
  output.text += rest;
  output.stopped = detokenizer.stopped();
  if (output.stopped) output.stop = detokenizer.stop();
  return output;
}

// The first end of any stop; of those that end there the longest.
Output expected(const Case& c, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : c.stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop) &&
          (best == nullptr || stop.size() > best->size())) {
        best = &stop;
      }
    }
    if (best != nullptr) {
      return {text.substr(0, end - (c.include_stop ? 0 : best->size())), true, *best};
    }
  }
  return {text};
}

}  // namespace
}  // namespace wok

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wok;
  const Case c = read_case({reinterpret_cast<const char*>(data), size});
  std::string bytes;
  std::vector<std::string> single;
  for (size_t i = 0; i < c.pieces.size(); ++i) {
    if (i % 11 != 10 || c.show_special) bytes += c.pieces[i];
  }
  for (const char byte : bytes) single.emplace_back(1, byte);
  const Output want = expected(c, as_utf8(bytes));
  const Output got = run(c, c.pieces, c.show_special);
  demand(got == want, "the text is not what it should be", got.text);
  demand(run(c, {bytes}, true) == want, "one token gives another text", bytes);
  demand(run(c, single, true) == want, "a token a byte gives another text", bytes);
  return 0;
}
