#include "server/auth.h"

#include <fstream>

#include <gtest/gtest.h>

namespace wok {
namespace {

TEST(Auth, ComparesWholeTexts) {
  EXPECT_TRUE(equal_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", "secre"));
  EXPECT_FALSE(equal_constant_time("secret", "secretsecret"));
  EXPECT_FALSE(equal_constant_time("secretsecret", "secret"));
  EXPECT_FALSE(equal_constant_time("", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", ""));
}

TEST(Auth, TakesBearerKeysOnly) {
  const std::vector<std::string> keys = {"one", "two"};
  EXPECT_TRUE(is_authorized("Bearer two", keys));
  EXPECT_TRUE(is_authorized("bearer one", keys));
  EXPECT_FALSE(is_authorized("Bearer three", keys));
  EXPECT_FALSE(is_authorized("Bearer ", keys));
  EXPECT_FALSE(is_authorized("Basic one", keys));
  EXPECT_FALSE(is_authorized("one", keys));
  EXPECT_FALSE(is_authorized("", keys));
}

TEST(Auth, KeyFiles) {
  const std::string path = ::testing::TempDir() + "/wok_keys_test";
  std::ofstream(path) << "# ours\n\n  first \nsecond\r\n";
  const auto keys = read_key_file(path);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(*keys, (std::vector<std::string>{"first", "second"}));
  std::ofstream(path) << "# none\n";
  EXPECT_EQ(read_key_file(path).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(read_key_file(path + ".not_there").error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace wok
