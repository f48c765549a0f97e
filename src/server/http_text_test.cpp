#include "server/http_text.h"

#include <gtest/gtest.h>

namespace wok {
namespace {

TEST(HttpText, PathsOfTargets) {
  EXPECT_EQ(target_path("/health?x=%zz"), "/health");
  EXPECT_EQ(target_path("/v1/models/a%2Fb%20c"), "/v1/models/a/b c");
  EXPECT_EQ(target_path("http://host:80/v1/models"), "/v1/models");
  EXPECT_EQ(target_path("http://host"), "/");
  EXPECT_EQ(target_path("*"), "*");
  EXPECT_EQ(target_path("/a%2"), std::nullopt);
  EXPECT_EQ(target_path("/a%zz"), std::nullopt);
  EXPECT_EQ(target_path("health"), std::nullopt);
  EXPECT_EQ(target_path(""), std::nullopt);
}

TEST(HttpText, Chunks) {
  std::string out;
  append_chunk_text("", out);
  EXPECT_EQ(out, "") << "an empty chunk would end the body";
  append_chunk_text("0123456789abcdef!", out);
  EXPECT_EQ(out, "11\r\n0123456789abcdef!\r\n");
}

}  // namespace
}  // namespace wok
