#include "text/whole_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace wok {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

const std::string kGolden = WOK_SOURCE_DIR "/tests/golden/";

std::string read(const std::string& name) {
  std::ifstream file(kGolden + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<WholeTokenizer> make(const std::string& source) {
  auto made = WholeTokenizer::create(source);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

// The vocabulary as GGUF spells it.
std::vector<std::string> gguf_tokens() {
  const json vocab = json::parse(read("tiny_bert/tokenizer.json"))["model"]["vocab"];
  std::vector<std::string> tokens(vocab.size());
  for (const auto& [piece, id] : vocab.items()) {
    std::string& token = tokens[id.get<size_t>()];
    token = piece.starts_with("[")    ? piece
            : piece.starts_with("##") ? piece.substr(2)
                                      : "▁" + piece;
  }
  return tokens;
}

TEST(WholeTokenizer, IdsAreTransformers) {
  const json golden = json::parse(read("encoder.json"));
  const auto vocabulary = wordpiece_json(gguf_tokens(), 2, 3, 1);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  for (const std::string& source : {read("tiny_bert/tokenizer.json"), *vocabulary}) {
    const auto tokenizer = make(source);
    for (const json& text : golden["texts"]) {
      const auto got = tokenizer->encode(text["text"].get<std::string>(), true, true);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(*got, text["ids"].get<Ids>()) << text["text"];
    }
    const std::string query = golden["query"];
    for (const json& text : golden["documents"]) {
      const auto document = text["text"].get<std::string>();
      const std::string_view view = document;
      const auto got = tokenizer->encode_pair(query, &view);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(got->ids, text["ids"].get<Ids>()) << document;
      EXPECT_EQ(got->types, text["types"].get<Ids>()) << document;
    }
  }
}

TEST(WholeTokenizer, CutsOnlyWhenAsked) {
  const json golden = json::parse(read("encoder.json"));
  const auto tokenizer = make(read("tiny_bert/tokenizer.json"));
  const std::string text = golden["long"]["text"], query = golden["query"];
  const std::string_view view = text;
  EXPECT_EQ(tokenizer->encode_pair(text, nullptr)->ids.size(), golden["long"]["tokens"]);
  const auto one = tokenizer->encode_pair(text, nullptr, 40);
  EXPECT_EQ(one->ids.size(), 40u);
  EXPECT_EQ(one->ids.back(), 3) << "[SEP] stays";
  const auto two = tokenizer->encode_pair(query, &view, 40);
  EXPECT_EQ(two->ids, golden["long_pair"]["ids"].get<Ids>());
  EXPECT_EQ(two->types, golden["long_pair"]["types"].get<Ids>());
  EXPECT_FALSE(tokenizer->encode_pair(query, &view, 3).ok());
}

TEST(WholeTokenizer, PiecesAndText) {
  const auto tokenizer = make(read("tiny_bert/tokenizer.json"));
  EXPECT_EQ(tokenizer->vocab_size(), 110);
  const Ids ids = *tokenizer->encode("Running cats", true, true);
  EXPECT_EQ(tokenizer->decode(ids), "running cats");
  EXPECT_EQ(tokenizer->decode(ids, true), "[CLS] running cats [SEP]");
  EXPECT_EQ(tokenizer->piece(tokenizer->id_of("cat")), " cat");
  EXPECT_EQ(tokenizer->piece(tokenizer->id_of("##s")), "s");
  EXPECT_EQ(tokenizer->piece(2), "");
  EXPECT_EQ(tokenizer->piece(2, true), "[CLS]");
  EXPECT_EQ(tokenizer->piece(110), "");
  EXPECT_EQ(tokenizer->encode("a", true, false).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(tokenizer->encode("\xff", true, true).error().kind, ErrorKind::kInvalid);
}

TEST(WholeTokenizer, FoldsCaseUnlessTheVocabularyHasCapitals) {
  EXPECT_TRUE(folds_case(read("tiny_bert/tokenizer.json")));
  std::vector<std::string> tokens = gguf_tokens();
  EXPECT_TRUE(folds_case(*wordpiece_json(tokens, 2, 3, 1)));
  tokens.emplace_back("▁Cat");
  const std::string cased = *wordpiece_json(tokens, 2, 3, 1);
  EXPECT_FALSE(folds_case(cased));
  EXPECT_EQ(make(cased)->encode("Cat", false, true).value(), Ids{110});
  EXPECT_FALSE(folds_case("{}"));
}

TEST(WholeTokenizer, DamagedOnesAreErrors) {
  EXPECT_EQ(WholeTokenizer::create("").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(WholeTokenizer::create("{\"model\": 3}").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(wordpiece_json(gguf_tokens(), -1, 3, 1).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(wordpiece_json(gguf_tokens(), 2, 110, 1).error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace wok
