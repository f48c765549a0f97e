#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "text/tokenizer_fixtures.h"

namespace wok {
namespace {

using test::byte_level_data;
using test::sentence_piece_data;
using test::spell;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Tokenizer> make(TokenizerData data) {
  auto made = Tokenizer::create(std::move(data));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(made).value() : nullptr;
}

Error failure(TokenizerData data) {
  auto made = Tokenizer::create(std::move(data));
  EXPECT_FALSE(made.ok());
  return made.ok() ? Error{} : made.error();
}

std::vector<int32_t> ids(const Tokenizer& tokenizer, std::string_view text,
                         bool add_special = false, bool parse_special = false) {
  auto encoded = tokenizer.encode(text, add_special, parse_special);
  EXPECT_TRUE(encoded.ok()) << encoded.error().message;
  return encoded.ok() ? *encoded : std::vector<int32_t>{};
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text,
                                bool parse_special = false) {
  std::vector<std::string> out;
  for (const int32_t id : ids(tokenizer, text, false, parse_special)) {
    out.emplace_back(tokenizer.piece(id, true));
  }
  return out;
}

const char* const kTexts[] = {
    "",
    " ",
    "hello world",
    "  hello   world  ",
    "naïve 日本語 ก็ 👨‍👩‍👧 e\u0301",
    "a\r\nb\t",
    "\xEF\xBB\xBF",
};

TEST(ByteLevelTokenizer, MergesInTheOrderOfTheTable) {
  const auto tokenizer = make(byte_level_data());
  EXPECT_THAT(pieces(*tokenizer, "hello"), ElementsAre("hello"));
  EXPECT_THAT(pieces(*tokenizer, "hell wo"), ElementsAre("hell", " w", "o"));
  EXPECT_THAT(pieces(*tokenizer, "helo"), ElementsAre("he", "l", "o"));
}

TEST(ByteLevelTokenizer, LeavesTheLastSpaceOfARunToTheWord) {
  const auto tokenizer = make(byte_level_data());
  EXPECT_THAT(pieces(*tokenizer, "a   w"), ElementsAre("a", "  ", " w"));
  EXPECT_THAT(pieces(*tokenizer, "a  "), ElementsAre("a", "  "));
  EXPECT_THAT(pieces(*tokenizer, "a \u3000w"), ElementsAre("a", " ", "\xE3", "\x80", "\x80", "w"));
}

TEST(ByteLevelTokenizer, EveryByteHasItsCharacter) {
  const auto tokenizer = make(byte_level_data());
  for (int32_t byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer->piece(byte), std::string(1, static_cast<char>(byte))) << byte;
  }
  for (int32_t code = 1; code < 0x180; ++code) {
    std::string text(1, static_cast<char>(code));
    if (code >= 0x80) {
      text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    }
    EXPECT_EQ(tokenizer->decode(ids(*tokenizer, text)), text) << code;
  }
}

TEST(ByteLevelTokenizer, EveryTextComesBack) {
  for (const char* pre : {"gpt-2", "default", "", "smollm", "llama-bpe", "gpt-4o", "tekken",
                          "deepseek-coder", "deepseek-v3"}) {
    const auto tokenizer = make(byte_level_data(pre));
    for (const char* text : kTexts)
      EXPECT_EQ(tokenizer->decode(ids(*tokenizer, text)), text) << pre;
  }
}

TEST(ByteLevelTokenizer, PreTokenizersDifferWhereTheirFamiliesDo) {
  TokenizerData data = byte_level_data("gpt-2");
  data.merges.push_back("1 2");
  test::add_token(data, "12");
  EXPECT_THAT(pieces(*make(data), "121"), ElementsAre("12", "1"));
  data.pre = "smollm";  // digits stand alone
  EXPECT_THAT(pieces(*make(data), "121"), ElementsAre("1", "2", "1"));
  data.pre = "llama-bpe";  // up to three digits
  EXPECT_THAT(pieces(*make(data), "12112"), ElementsAre("12", "1", "12"));
}

TEST(ByteLevelTokenizer, QwenNormalizesToNfc) {
  const auto tokenizer = make(byte_level_data("qwen2"));
  EXPECT_EQ(ids(*tokenizer, "e\u0301"), ids(*tokenizer, "é"));
}

TEST(ByteLevelTokenizer, ALlama3WordThatIsATokenNeedsNoMerges) {
  TokenizerData data = byte_level_data("llama-bpe");
  test::add_token(data, "xyz");
  EXPECT_THAT(pieces(*make(data), "xyz"), ElementsAre("xyz"));
  data.pre = "gpt-2";
  EXPECT_THAT(pieces(*make(data), "xyz"), ElementsAre("x", "y", "z"));
}

TEST(ByteLevelTokenizer, LongRunsAreNoTrouble) {
  const auto tokenizer = make(byte_level_data("smollm"));
  const std::string spaces = "x" + std::string(200000, ' ') + "w";
  EXPECT_EQ(tokenizer->decode(ids(*tokenizer, spaces)), spaces);
  const std::string letters(200000, 'l');
  EXPECT_EQ(ids(*tokenizer, letters).size(), 100000u);
}

TEST(Tokenizer, ControlTokensInTextNeedParseSpecial) {
  for (const TokenizerData& data : {byte_level_data(), sentence_piece_data()}) {
    const auto tokenizer = make(data);
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      if (!tokenizer->is_control(id)) continue;
      std::string text = "x";
      text += tokenizer->piece(id, true);
      text += "y";
      for (const int32_t plain : ids(*tokenizer, text)) EXPECT_FALSE(tokenizer->is_control(plain));
      EXPECT_THAT(ids(*tokenizer, text, false, true), ::testing::Contains(id));
      EXPECT_EQ(tokenizer->piece(id), "");
    }
  }
}

TEST(Tokenizer, NoMergeMakesAControlToken) {
  TokenizerData data = byte_level_data();
  const int32_t id = test::add_token(data, "ab", TokenKind::kControl);
  const auto tokenizer = make(data);
  EXPECT_THAT(pieces(*tokenizer, "ab"), ElementsAre("a", "b"));
  EXPECT_THAT(ids(*tokenizer, "ab", false, true), ElementsAre(id));
  TokenizerData spm = sentence_piece_data();
  spm.add_space_prefix = false;
  test::add_token(spm, "wo", TokenKind::kControl, 100);
  EXPECT_THAT(pieces(*make(spm), "wo"), ElementsAre("w", "o"));
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysFound) {
  EXPECT_THAT(pieces(*make(byte_level_data()), "a<think>b"), ElementsAre("a", "<think>", "b"));
  TokenizerData data = sentence_piece_data();
  data.add_space_prefix = false;
  EXPECT_THAT(pieces(*make(data), "h\n\n\ne"), ElementsAre("h", "\n\n", "\n", "e"));
}

TEST(Tokenizer, ExactlyOneBos) {
  const auto tokenizer = make(sentence_piece_data());
  const int32_t bos = tokenizer->bos_id();
  EXPECT_THAT(ids(*tokenizer, "", true), ElementsAre(bos));
  EXPECT_THAT(ids(*tokenizer, "<s>", true, true), ElementsAre(bos));
  EXPECT_EQ(ids(*tokenizer, "<s>hello", true, true), ids(*tokenizer, "hello", true, true));
  EXPECT_NE(ids(*tokenizer, "hello", false).front(), bos);
  TokenizerData data = sentence_piece_data();
  data.add_bos = false;
  EXPECT_NE(ids(*make(data), "hello", true).front(), bos);
  data.add_eos = true;
  const auto ends = make(data);
  EXPECT_EQ(ids(*ends, "hello", true).back(), ends->eos_id());
  EXPECT_EQ(ids(*ends, "hello</s>", true, true), ids(*ends, "hello", true, true));
}

TEST(SentencePieceTokenizer, MergesByScore) {
  TokenizerData data = sentence_piece_data();
  EXPECT_THAT(pieces(*make(data), "hello"), ElementsAre(" hello"));
  data.add_space_prefix = false;
  EXPECT_THAT(pieces(*make(data), "hello hello"), ElementsAre("hello", " hello"));
  EXPECT_THAT(pieces(*make(data), "he  w"), ElementsAre("he", " ", " w"));
  for (float& score : data.scores) score = 0;  // all alike: the longer left side first
  EXPECT_THAT(pieces(*make(data), "hello"), ElementsAre("hello"));
}

TEST(SentencePieceTokenizer, UnknownCharactersFallBackToBytes) {
  TokenizerData data = sentence_piece_data();
  data.add_space_prefix = false;
  const auto tokenizer = make(data);
  EXPECT_THAT(pieces(*tokenizer, "é日"), ElementsAre("é", "\xE6", "\x97", "\xA5"));
  EXPECT_EQ(tokenizer->decode(ids(*tokenizer, "é日")), "é日");
}

TEST(SentencePieceTokenizer, WithoutBytesThereIsUnk) {
  TokenizerData data = sentence_piece_data();
  for (size_t id = 4; id < 260; ++id) {
    data.kinds[id] = TokenKind::kUnused;
    data.tokens[id] = "unused" + std::to_string(id);
  }
  data.add_space_prefix = false;
  EXPECT_THAT(ids(*make(data), "h日本h").size(), 3u);  // one <unk> for the run
  data.unk_id = -1;
  auto encoded = make(data)->encode("h日本h", false, false);
  ASSERT_FALSE(encoded.ok());
  EXPECT_THAT(encoded.error().message, HasSubstr("no tokens for some characters"));
}

TEST(SentencePieceTokenizer, LeadingSpaceIsAddedAndDropped) {
  TokenizerData data = sentence_piece_data();
  for (const bool prefix : {true, false}) {
    data.add_space_prefix = prefix;
    const auto tokenizer = make(data);
    for (const char* text : kTexts) {
      EXPECT_EQ(tokenizer->decode(ids(*tokenizer, text, true)), text) << prefix;
    }
  }
}

TEST(SentencePieceTokenizer, KindsMayBeMissing) {
  TokenizerData data = sentence_piece_data();
  data.kinds.clear();
  data.add_space_prefix = false;
  const auto tokenizer = make(data);
  EXPECT_TRUE(tokenizer->is_control(tokenizer->bos_id()));
  EXPECT_EQ(tokenizer->decode(ids(*tokenizer, "日 hello")), "日 hello");
}

TEST(Tokenizer, EndIdsAreEosEotAndKnownControlTokens) {
  TokenizerData data = sentence_piece_data();
  data.eot_id = 4;
  const auto tokenizer = make(data);
  EXPECT_THAT(tokenizer->end_ids(), ElementsAre(2, 4, tokenizer->id_of("<end_of_turn>")));
  data.kinds[3] = TokenKind::kUserDefined;  // "<end_of_turn>" as text, like HTML's "</s>" in Gemma
  EXPECT_THAT(make(data)->end_ids(), ElementsAre(2, 4));
}

TEST(Tokenizer, IdOfKnowsEveryPieceAsSpelled) {
  for (const TokenizerData& data : {byte_level_data(), sentence_piece_data()}) {
    const auto tokenizer = make(data);
    for (size_t id = 0; id < data.tokens.size(); ++id) {
      EXPECT_EQ(tokenizer->id_of(data.tokens[id]), static_cast<int32_t>(id)) << data.tokens[id];
    }
    EXPECT_EQ(tokenizer->id_of("no such piece"), -1);
    EXPECT_EQ(tokenizer->id_of(""), -1);
    EXPECT_EQ(tokenizer->id_of("\xFF"), -1);
  }
}

TEST(Tokenizer, PiecesOfIdsOutOfRangeAreEmpty) {
  const auto tokenizer = make(byte_level_data());
  for (const int32_t id : {-1, -1000, tokenizer->vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->piece(id, true), "");
    EXPECT_FALSE(tokenizer->is_control(id));
  }
  const std::vector<int32_t> bad = {-5, 'h', INT32_MAX, 'i'};
  EXPECT_EQ(tokenizer->decode(bad), "hi");
}

TEST(Tokenizer, DecodeReplacesWhatIsNoUtf8) {
  const auto tokenizer = make(byte_level_data());
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{'a', 0xE6, 0x97, 'b'}), "a\uFFFDb");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{0xFF, 0xC0, 'a', 0xF0, 0x9F}),
            "\uFFFD\uFFFDa\uFFFD");
}

TEST(Tokenizer, NulBytesAreText) {
  const auto tokenizer = make(byte_level_data());
  const std::string text("a\0b", 3);
  EXPECT_EQ(ids(*tokenizer, text).size(), 3u);
  EXPECT_EQ(tokenizer->decode(ids(*tokenizer, text)), text);
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  const auto tokenizer = make(byte_level_data());
  auto encoded = tokenizer->encode("ab\xFFz", true, true);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(encoded.error().message, HasSubstr("offset 2"));
}

TEST(Tokenizer, DuplicateTokensMeanTheFirst) {
  TokenizerData data = byte_level_data();
  const auto last = static_cast<int32_t>(data.tokens.size());
  test::add_token(data, "a");
  const auto tokenizer = make(data);
  EXPECT_THAT(ids(*tokenizer, "a"), ElementsAre('a'));
  EXPECT_EQ(tokenizer->piece(last), "a");
}

TEST(Tokenizer, DamagedTablesAreRefusedByName) {
  TokenizerData data = byte_level_data();
  data.tokens.clear();
  EXPECT_THAT(failure(data).message, HasSubstr("tokenizer.ggml.tokens"));
  data = byte_level_data();
  data.kinds.pop_back();
  EXPECT_THAT(failure(data).message, HasSubstr("tokenizer.ggml.token_type"));
  data = sentence_piece_data();
  data.scores.pop_back();
  EXPECT_THAT(failure(data).message, HasSubstr("tokenizer.ggml.scores"));
  data = byte_level_data();
  data.merges.clear();
  EXPECT_THAT(failure(data).message, HasSubstr("tokenizer.ggml.merges"));
  data = byte_level_data();
  data.eos_id = 100000;
  EXPECT_THAT(failure(data).message, HasSubstr("EOS is 100000"));
  data = byte_level_data();
  data.tokens[7] = "\xFF";
  EXPECT_THAT(failure(data).message, HasSubstr("token 7"));
}

TEST(Tokenizer, DamagedMergesAreRefused) {
  TokenizerData data = byte_level_data();
  data.merges.push_back("h zz");
  Error error = failure(data);
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("\"zz\", which is not a token"));
  data.merges.back() = "h x";  // both pieces exist, what they make does not
  EXPECT_THAT(failure(data).message, HasSubstr("\"hx\", which is not a token"));
  data.merges.back() = "nospace";
  EXPECT_THAT(failure(data).message, HasSubstr("not two pieces"));
}

TEST(Tokenizer, UnknownKindsAreUnsupportedByName) {
  Error error = failure(byte_level_data("martian"));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("\"martian\""));
  EXPECT_THAT(error.message, HasSubstr("smollm"));
  TokenizerData data = byte_level_data();
  data.model = "bert";
  error = failure(data);
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("\"bert\""));
}

TEST(Tokenizer, ManyThreadsMayShareOne) {
  const auto tokenizer = make(byte_level_data());
  const std::vector<int32_t> want = ids(*tokenizer, "hello world, hello all");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        ASSERT_EQ(ids(*tokenizer, "hello world, hello all"), want);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace wok
