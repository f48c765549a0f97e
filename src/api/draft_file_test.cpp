#include "api/draft_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "api/tokenizer_data.h"
#include "tests/support/tiny_model.h"

namespace wok {
namespace {

class DraftFileTest : public testing::Test {
 protected:
  Result<std::shared_ptr<const ModelFile>> open(const std::vector<uint8_t>& draft) {
    const std::string path = testing::TempDir() + "draft_file_test.gguf";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(draft.data()),
               static_cast<std::streamsize>(draft.size()));
    const std::vector<uint8_t> bytes = test::TinyWriter({}, 1).bytes();
    const auto target = parse_gguf(bytes, "target.gguf");
    EXPECT_TRUE(target.ok());
    return open_draft_file(path, "target.gguf", *read_tokenizer_data(*target));
  }
};

TEST_F(DraftFileTest, TheSameVocabularyIsTaken) {
  EXPECT_TRUE(open(test::TinyWriter({.layers = 1}, 2).bytes()).ok());
  EXPECT_TRUE(open(test::TinyWriter({.vocab = 200}, 2).bytes()).ok()) << "longer by padding";
}

TEST_F(DraftFileTest, AnotherVocabularyIsRefusedWithTheFirstTokenThatDiffers) {
  std::vector<uint8_t> bytes = test::TinyWriter({}, 2).bytes();
  const std::string text = "t120";
  const auto at = std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
  ASSERT_NE(at, bytes.end());
  *at = 'x';
  const auto file = open(bytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(file.error().message.find("token 120 is 'x120' in one and 't120' in the other"),
            std::string::npos)
      << file.error().message;
}

TEST_F(DraftFileTest, ADamagedFileIsAnError) {
  std::vector<uint8_t> bytes = test::TinyWriter({}, 2).bytes();
  bytes.resize(bytes.size() / 2);
  EXPECT_FALSE(open(bytes).ok());
}

}  // namespace
}  // namespace wok
