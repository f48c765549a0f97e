#include "api/json_body.h"

#include <gtest/gtest.h>

namespace wok {
namespace {

std::string error_of(const std::string& body) {
  auto parsed = parse_json_body(body);
  const auto* error = std::get_if<ApiError>(&parsed);
  return error == nullptr ? "" : error->message;
}

TEST(JsonBody, SaysAtWhichByteItBreaks) {
  EXPECT_NE(error_of(R"({"a": 1,})").find("at byte 9"), std::string::npos)
      << error_of("{\"a\": 1,}");
  EXPECT_NE(error_of("{\"a\": \"\xFF\"}").find("at byte 8"), std::string::npos)
      << error_of("{\"a\": \"\xFF\"}");
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
  EXPECT_NE(error_of("[1]").find("object"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": "\ud800"})").find("at byte"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 1e999})").find("out of range"), std::string::npos);
}

TEST(JsonBody, NestingIsBounded) {
  EXPECT_EQ(error_of(R"({"a": [[["]]]["]]]})"), "") << "brackets in strings do not count";
  const std::string deep(1'000'000, '[');
  EXPECT_NE(error_of("{\"a\": " + deep).find("nests deeper than 64"), std::string::npos);
}

TEST(JsonBody, NumberOfValuesIsBounded) {
  std::string many = "{\"a\": [[]";
  for (size_t i = 0; i < kMaxJsonValues; ++i) many += ",[]";
  EXPECT_NE(error_of(many + "]}").find("more than 2000000 values"), std::string::npos);
}

}  // namespace
}  // namespace wok
