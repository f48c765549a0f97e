#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "text/utf8.h"

namespace wok {
namespace {

// A tokenizer whose tokens are whatever byte strings the test adds.
class FreeTokenizer final : public Tokenizer {
 public:
  int32_t token(std::string_view bytes) {
    const auto [entry, added] =
        ids_.try_emplace(std::string(bytes), static_cast<int32_t>(ids_.size()));
    if (added) pieces_.push_back(entry->first);
    return entry->second;
  }
  std::vector<int32_t> cut(std::string_view text, const std::vector<size_t>& places) {
    std::vector<int32_t> tokens;
    size_t at = 0;
    for (const size_t place : places) {
      tokens.push_back(token(text.substr(at, place - at)));
      at = place;
    }
    tokens.push_back(token(text.substr(at)));
    return tokens;
  }

  Result<std::vector<int32_t>> encode(std::string_view, bool, bool) const override {
    return unsupported("this tokenizer only decodes");
  }
  std::string_view piece(int32_t id, bool) const override {
    return pieces_[static_cast<size_t>(id)];
  }
  std::string decode(std::span<const int32_t>, bool) const override { return ""; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return -1; }
  int32_t eos_id() const override { return -1; }
  bool add_bos() const override { return false; }
  const std::vector<int32_t>& end_ids() const override { return none_; }
  bool is_control(int32_t) const override { return false; }
  int32_t id_of(std::string_view) const override { return -1; }

 private:
  std::map<std::string, int32_t, std::less<>> ids_;
  std::vector<std::string_view> pieces_;
  std::vector<int32_t> none_;
};

struct Output {
  std::string text;
  bool stopped = false;
  std::string stop;
  bool operator==(const Output&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Output& output) {
  return out << '"' << output.text << "\" stop \"" << output.stop << '"';
}

// Feeds the tokens; every chunk that comes out must be whole characters, and nothing may be taken
// back: what a client has seen is always the beginning of the final text.
Output run(const FreeTokenizer& tokenizer, const std::vector<int32_t>& tokens,
           const std::vector<std::string>& stops, bool include_stop = false) {
  Detokenizer detokenizer(tokenizer, stops, false, include_stop);
  Output output;
  for (const int32_t token : tokens) {
    std::string chunk;
    output.stopped = detokenizer.feed(token, chunk);
    EXPECT_EQ(find_invalid_utf8(chunk), std::string::npos) << "a split character in: " << chunk;
    output.text += chunk;
    if (output.stopped) break;
  }
  detokenizer.finish(output.text);
  output.stopped = detokenizer.stopped();
  if (output.stopped) output.stop = detokenizer.stop();
  return output;
}

// What must come out, by the plainest code: look at every end in turn.
Output expected(const std::string& text, const std::vector<std::string>& stops, bool include_stop) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop) &&
          (best == nullptr || stop.size() > best->size())) {
        best = &stop;
      }
    }
    if (best != nullptr)
      return {text.substr(0, end - (include_stop ? 0 : best->size())), true, *best};
  }
  return {text, false, ""};
}

const char kText[] =
    "Grüße 👨‍👩‍👧 日本語<|end|> e\u0301 aabaabaaab\n\nUser: ก็ 🏳️‍🌈 "
    "end";

const std::vector<std::vector<std::string>> kStopSets = {
    {},
    {"nowhere"},
    {"<|end|>"},
    {"aab\n"},
    {"aaab"},
    {"abaabaaa", "baab"},
    {"\n\nUser:", "\n\nAssistant:"},
    {"日本", "本語"},
    {"👩"},
    {"end"},
    {"語<|end|> x", "<|end|>"},
    {"b\n\nUser: ก็!", "User"},
    {"ßen", "ß", "üß"},
    {"🌈 en", "🌈 end."},
};

TEST(Detokenizer, ASingleCutAnywhereChangesNothing) {
  const std::string text = kText;
  for (const auto& stops : kStopSets) {
    for (const bool include : {false, true}) {
      const Output want = expected(text, stops, include);
      FreeTokenizer tokenizer;
      for (size_t place = 0; place <= text.size(); ++place) {
        EXPECT_EQ(run(tokenizer, tokenizer.cut(text, {place}), stops, include), want) << place;
      }
    }
  }
}

TEST(Detokenizer, OneByteATokenChangesNothing) {
  const std::string text = kText;
  std::vector<size_t> every;
  for (size_t place = 1; place < text.size(); ++place) every.push_back(place);
  for (const auto& stops : kStopSets) {
    FreeTokenizer tokenizer;
    EXPECT_EQ(run(tokenizer, tokenizer.cut(text, every), stops), expected(text, stops, false));
  }
}

TEST(Detokenizer, RandomCutsAndStopsChangeNothing) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 3000; ++round) {
    std::string text;  // few letters, so that stops overlap; some of several bytes
    for (int i = 0; i < 24; ++i) {
      constexpr const char* kLetters[] = {"a", "b", "é", "👩", "\u200d"};
      text += kLetters[random() % 5];
    }
    std::vector<std::string> stops;
    const size_t count = random() % 4;
    while (stops.size() < count) {
      std::string stop;
      constexpr const char* kLetters[] = {"a", "b", "é", "👩", "c"};
      for (size_t i = 0, length = 1 + random() % 5; i < length; ++i) stop += kLetters[random() % 5];
      stops.push_back(stop);
    }
    std::vector<size_t> places;
    for (size_t place = 0; place < text.size(); place += random() % 7) places.push_back(place);
    const bool include = random() % 2 == 0;
    FreeTokenizer tokenizer;
    ASSERT_EQ(run(tokenizer, tokenizer.cut(text, places), stops, include),
              expected(text, stops, include))
        << "round " << round << ", text " << text;
  }
}

TEST(Detokenizer, HoldsBackOnlyWhatMayBeAStop) {
  FreeTokenizer tokenizer;
  Detokenizer detokenizer(tokenizer, {"\n\nUser:"});
  std::string out;
  EXPECT_FALSE(detokenizer.feed(tokenizer.token("text\n"), out));
  EXPECT_EQ(out, "text");
  EXPECT_FALSE(detokenizer.feed(tokenizer.token("x\n\nUs"), out));
  EXPECT_EQ(out, "text\nx");
  EXPECT_FALSE(detokenizer.feed(tokenizer.token("ed"), out));
  EXPECT_EQ(out, "text\nx\n\nUsed");
}

TEST(Detokenizer, IgnoresTokensAfterTheStop) {
  FreeTokenizer tokenizer;
  Detokenizer detokenizer(tokenizer, {"stop"});
  std::string out;
  EXPECT_TRUE(detokenizer.feed(tokenizer.token("a stop b"), out));
  EXPECT_TRUE(detokenizer.feed(tokenizer.token("more"), out));
  detokenizer.finish(out);
  EXPECT_EQ(out, "a ");
  EXPECT_EQ(detokenizer.stop(), "stop");
}

TEST(Detokenizer, AnUnfinishedCharacterBecomesOneReplacement) {
  for (const char* start : {"\xC3", "\xE6\x97", "\xF0\x9F", "\xF0\x9F\x91"}) {
    FreeTokenizer tokenizer;
    EXPECT_EQ(run(tokenizer, {tokenizer.token("a"), tokenizer.token(start)}, {}).text, "a\uFFFD");
  }
}

TEST(Detokenizer, BytesThatAreNoUtf8AreReplacedAtOnce) {
  FreeTokenizer tokenizer;
  const std::string text = "a\xFF\xC0\xE6\x97z\xED\xA0\x80\xF4\x90\x80\x80!";
  const std::string want = "a\uFFFD\uFFFD\uFFFDz\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD!";
  for (size_t place = 0; place <= text.size(); ++place) {
    EXPECT_EQ(run(tokenizer, tokenizer.cut(text, {place}), {}).text, want) << place;
  }
}

// Overlong forms, surrogates and what lies beyond U+10FFFF: their second byte is already wrong.
TEST(Detokenizer, SecondBytesAreChecked) {
  FreeTokenizer tokenizer;
  for (const char* wrong : {"\xE0\x9F", "\xED\xA0", "\xF0\x8F", "\xF4\x90", "\xC3\xC3"}) {
    const std::string text = std::string(wrong) + "z";
    EXPECT_EQ(run(tokenizer, {tokenizer.token(text)}, {}).text, "\uFFFD\uFFFDz") << wrong;
    EXPECT_EQ(find_invalid_utf8("a" + text), 1u);
  }
  for (const char* right : {"\u0800", "\uD7FF", "\uE000", "\U00010000", "\U0010FFFF", "\u0080"}) {
    EXPECT_EQ(run(tokenizer, {tokenizer.token(right)}, {}).text, right);
  }
}

TEST(Detokenizer, NulBytesPass) {
  FreeTokenizer tokenizer;
  const std::string text("a\0b", 3);
  EXPECT_EQ(run(tokenizer, {tokenizer.token(text)}, {}).text, text);
}

}  // namespace
}  // namespace wok
