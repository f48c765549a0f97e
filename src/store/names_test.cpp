#include "store/names.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace wok::store {
namespace {

TEST(Names, AcceptsNamesAndTags) {
  for (const char* name : {"smollm2", "gemma3:270m", "a", "qwen2.5:0.5b-instruct_q4", "3b"}) {
    EXPECT_TRUE(valid_name(name)) << name;
  }
}

TEST(Names, RefusesWhateverCouldLeaveTheFolder) {
  const std::vector<std::string> bad = {"",
                                        ".",
                                        "..",
                                        "../x",
                                        "a/b",
                                        "/etc/passwd",
                                        "a\\b",
                                        ".hidden",
                                        "-flag",
                                        "a:",
                                        ":a",
                                        "a:b:c",
                                        "a:..",
                                        "a:../b",
                                        "A",
                                        "a b",
                                        "a%2f",
                                        "a\n",
                                        std::string("a\0b", 3),
                                        "a\xc3\xa9",
                                        std::string(129, 'a')};
  for (const std::string& name : bad) {
    EXPECT_FALSE(valid_name(name)) << name;
    EXPECT_EQ(canonical_name(name).error().kind, ErrorKind::kInvalid) << name;
  }
}

TEST(Names, TellsPathsFromNames) {
  EXPECT_TRUE(looks_like_path("./x"));
  EXPECT_TRUE(looks_like_path("/x"));
  EXPECT_TRUE(looks_like_path("x.gguf"));
  EXPECT_FALSE(looks_like_path("gemma3:270m"));
}

TEST(Names, ChecksDigests) {
  EXPECT_TRUE(valid_sha256_hex(std::string(64, 'a')));
  EXPECT_FALSE(valid_sha256_hex(std::string(63, 'a')));
  EXPECT_FALSE(valid_sha256_hex(std::string(64, 'A')));
  EXPECT_FALSE(valid_sha256_hex("../" + std::string(61, 'a')));
}

}  // namespace
}  // namespace wok::store
