// Models split over several files, whole and with every kind of damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/support/raw_gguf.h"

namespace wok {
namespace {

using test::RawGguf;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kU16 = 2, kU32 = 4, kI32 = 5;

class GgufSplit : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "wok_split_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string name(int part, int count = 3) const {
    return fmt::format("{}/model-{:05}-of-{:05}.gguf", dir_, part, count);
  }
  static void write(const std::string& path, const RawGguf& raw) {
    const auto bytes = raw.bytes();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  // Keys as llama.cpp's gguf-split writes them.
  static RawGguf split_keys(int number, int count, int tensors) {
    RawGguf raw;
    raw.scalar("split.no", kU16, static_cast<uint16_t>(number))
        .scalar("split.count", kU16, static_cast<uint16_t>(count))
        .scalar("split.tensors.count", kI32, int32_t{tensors});
    return raw;
  }
  // Part `number` (from 0) with one tensor of eight floats, all of the part's number.
  static RawGguf part(int number, int count = 3, int tensors = 3) {
    RawGguf raw = split_keys(number, count, tensors);
    if (number == 0) raw.text("general.name", "three parts");
    raw.tensor({"tensor." + std::to_string(number), {8}});
    for (int i = 0; i < 8; ++i) {
      const auto value = static_cast<float>(number);
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      raw.data.insert(raw.data.end(), bytes, bytes + sizeof(value));
    }
    return raw;
  }
  void write_all() {
    for (int number = 0; number < 3; ++number) write(name(number + 1), part(number));
  }
  static Error refusal(const std::string& path) {
    const auto file = ModelFile::open(path);
    EXPECT_FALSE(file.ok());
    return file.ok() ? Error{} : file.error();
  }

  std::string dir_;
};

TEST_F(GgufSplit, ThreePartsAreOneModel) {
  write_all();
  auto opened = ModelFile::open(name(1));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const ModelFile file = std::move(opened).value();  // views survive a move
  EXPECT_EQ(file.path(), name(1));
  uint64_t bytes = 0;
  for (int number = 1; number <= 3; ++number) bytes += std::filesystem::file_size(name(number));
  EXPECT_EQ(file.file_bytes(), bytes);
  EXPECT_EQ(**file.get_string("general.name"), "three parts");
  ASSERT_EQ(file.tensors().size(), 3u);
  for (int number = 0; number < 3; ++number) {
    const ModelTensor* tensor = file.find_tensor("tensor." + std::to_string(number));
    ASSERT_NE(tensor, nullptr);
    float value = -1;
    std::memcpy(&value, tensor->data.data() + 28, sizeof(value));
    EXPECT_EQ(value, static_cast<float>(number));
  }
}

TEST_F(GgufSplit, AFirstPartWithoutTensors) {
  RawGguf first = split_keys(0, 3, 2);
  write(name(1), first);
  write(name(2), part(1));
  write(name(3), part(2));
  const auto file = ModelFile::open(name(1));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 2u);
}

TEST_F(GgufSplit, OnePartOfOneNeedsNoName) {
  const std::string path = dir_ + "/whole.gguf";
  write(path, part(0, 1, 1));
  EXPECT_TRUE(ModelFile::open(path).ok());
}

TEST_F(GgufSplit, KeysOfLaterPartsDoNotCount) {
  write_all();
  RawGguf second = part(1);
  second.text("general.name", "another").text("general.author", "someone");
  write(name(2), second);
  const auto file = ModelFile::open(name(1));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(**file->get_string("general.name"), "three parts");
  EXPECT_EQ(*file->get_string("general.author"), std::nullopt);
}

TEST_F(GgufSplit, AMissingPartIsNamed) {
  write_all();
  std::filesystem::remove(name(2));
  const Error error = refusal(name(1));
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_THAT(error.message, AllOf(HasSubstr("part 2 of 3"), HasSubstr(name(2))));
}

TEST_F(GgufSplit, ADamagedPartIsNamed) {
  write_all();
  std::filesystem::resize_file(name(3), std::filesystem::file_size(name(3)) - 1);
  EXPECT_THAT(refusal(name(1)).message,
              AllOf(HasSubstr(name(3)), HasSubstr("reaches past the end")));
  std::filesystem::resize_file(name(3), 0);
  EXPECT_THAT(refusal(name(1)).message, AllOf(HasSubstr(name(3)), HasSubstr("is empty")));
}

TEST_F(GgufSplit, TheWrongPartUnderAName) {
  write_all();
  write(name(2), part(2));
  write(name(3), part(1));
  EXPECT_THAT(refusal(name(1)).message,
              AllOf(HasSubstr(name(2)), HasSubstr("says it is part 3, expected part 2")));
}

TEST_F(GgufSplit, APartThatDoesNotSayItsNumber) {
  write_all();
  RawGguf second;
  second.scalar("split.count", kU16, uint16_t{3});
  write(name(2), second);
  EXPECT_THAT(refusal(name(1)).message, AllOf(HasSubstr(name(2)), HasSubstr("expected part 2")));
  RawGguf text;
  text.text("split.no", "1");
  write(name(2), text);
  EXPECT_THAT(refusal(name(1)).message, HasSubstr("'split.no' is not a whole number"));
}

TEST_F(GgufSplit, StartsAtTheFirstPart) {
  write_all();
  const Error error = refusal(name(2));
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("part 2 of 3"), HasSubstr("open part 1")));
}

TEST_F(GgufSplit, TheNumberOfTensorsMustBeRight) {
  write_all();
  write(name(1), part(0, 3, 4));
  EXPECT_THAT(refusal(name(1)).message, HasSubstr("hold 3 tensors, the first says 4"));
}

TEST_F(GgufSplit, PartsOfAnotherSplitAreRefused) {
  write_all();
  write(name(3), part(2, 5));
  EXPECT_THAT(refusal(name(1)).message, AllOf(HasSubstr(name(3)), HasSubstr("5 parts")));
}

TEST_F(GgufSplit, ATensorInTwoParts) {
  write_all();
  RawGguf third = split_keys(2, 3, 3);
  third.tensor({"tensor.1", {8}});
  third.data.assign(32, 0);
  write(name(3), third);
  EXPECT_THAT(refusal(name(1)).message,
              AllOf(HasSubstr(name(3)), HasSubstr("tensor 'tensor.1' is there twice")));
}

TEST_F(GgufSplit, NamesThatTellNoParts) {
  for (const char* wrong : {"model.gguf", "model-1-of-3.gguf", "model-00001-of-00003.bin"}) {
    const std::string path = dir_ + "/" + wrong;
    write(path, part(0));
    EXPECT_THAT(refusal(path).message,
                AllOf(HasSubstr(path), HasSubstr("restore the parts' names")));
  }
}

TEST_F(GgufSplit, AbsurdCounts) {
  for (const uint32_t count : {10000u, 0xffffffffu}) {
    RawGguf raw;
    raw.scalar("split.count", kU32, count);
    write(name(1), raw);
    EXPECT_THAT(refusal(name(1)).message, HasSubstr(std::to_string(count) + " parts"));
  }
  for (const int32_t count : {0, -1}) {  // not split
    RawGguf raw;
    raw.scalar("split.count", kI32, count);
    write(name(1), raw);
    EXPECT_TRUE(ModelFile::open(name(1)).ok()) << count;
  }
  RawGguf raw;
  raw.text("split.count", "3");
  write(name(1), raw);
  EXPECT_THAT(refusal(name(1)).message, HasSubstr("'split.count' is not a whole number"));
}

}  // namespace
}  // namespace wok
