#include "api/json_write.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace wok {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWrite, EveryAsciiCharacterReadsBack) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  EXPECT_EQ(nlohmann::json::parse(escaped(text)).get<std::string>(), text);
}

TEST(JsonWrite, Utf8GoesThroughUnchanged) {
  const std::string text = "naïve – 日本語 🙂 \xF4\x8F\xBF\xBF";
  EXPECT_EQ(escaped(text), "\"" + text + "\"");
}

TEST(JsonWrite, WhatIsNotUtf8BecomesReplacementCharacters) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("a\xF0\x9F\x98"), "\"a" + replaced + replaced + replaced + "\"");
  EXPECT_EQ(escaped("\xC0\xAF"), "\"" + replaced + replaced + "\"") << "overlong";
  EXPECT_EQ(escaped("\xED\xA0\x80!"), "\"" + replaced + replaced + replaced + "!\"") << "surrogate";
  EXPECT_EQ(escaped("\xF5\x80\x80\x80").size(), 14u) << "beyond U+10FFFF";
}

TEST(JsonWrite, LogprobsAreAlwaysNumbers) {
  std::string out;
  append_json_logprob(out, -INFINITY);
  EXPECT_EQ(out, "-9999.0");
  out.clear();
  append_json_logprob(out, NAN);
  EXPECT_EQ(out, "-9999.0");
  out.clear();
  append_json_logprob(out, -0.1f);
  EXPECT_EQ(out, "-0.1");
}

TEST(JsonWrite, CountsCharacters) {
  EXPECT_EQ(count_characters("caf\xC3\xA9"), 4);
  EXPECT_EQ(count_characters("\xA9"), 0) << "the rest of one that was counted already";
}

}  // namespace
}  // namespace wok
