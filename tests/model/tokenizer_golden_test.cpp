// Token ids of both real models against Hugging Face's own tokenizers on a nasty corpus
// (tools/golden/tokenizer.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/tokenizer_data.h"
#include "tests/model/models.h"
#include "text/tokenizer.h"

namespace wok::test {
namespace {

void compare(const std::string& model, const std::string& golden_name) {
  auto file = ModelFile::open(model_path(model));
  ASSERT_TRUE(file.ok()) << file.error().message;
  auto data = read_tokenizer_data(*file);
  ASSERT_TRUE(data.ok()) << data.error().message;
  auto tokenizer = Tokenizer::create(std::move(data).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  std::ifstream stream(WOK_SOURCE_DIR "/tests/golden/" + golden_name);
  const nlohmann::json golden = nlohmann::json::parse(stream);
  EXPECT_EQ((*tokenizer)->vocab_size(), golden["vocab_size"]);
  int compared = 0;
  for (const auto& c : golden["cases"]) {
    const std::string text = c["text"];
    const auto plain = (*tokenizer)->encode(text, false, false);
    const auto special = (*tokenizer)->encode(text, false, true);
    ASSERT_TRUE(plain.ok() && special.ok()) << c["name"];
    EXPECT_EQ(*plain, c["ids"].get<std::vector<int32_t>>()) << c["name"];
    EXPECT_EQ(*special, c["ids_parse_special"].get<std::vector<int32_t>>()) << c["name"];
    // An SPM vocabulary writes spaces as U+2581, so that character itself does not survive.
    if (c["name"] != "literal sentencepiece space") {
      EXPECT_EQ((*tokenizer)->decode(*plain, true), text) << c["name"];
    }
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(TokenizerGolden, SmolLm2) {
  compare("smollm2", "tokenizer_smollm2.json");
}
TEST(TokenizerGolden, Gemma3) {
  compare("gemma3:270m", "tokenizer_gemma3_270m.json");
}

}  // namespace
}  // namespace wok::test
