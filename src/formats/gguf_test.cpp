// Whole files read back, and what every getter says of keys that are missing or of another type.
#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/raw_gguf.h"

namespace wok {
namespace {

using test::RawGguf;
using testing::ElementsAre;
using testing::HasSubstr;

// Value types as the specification numbers them.
enum : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

RawGguf every_type() {
  RawGguf raw;
  raw.scalar("u8", kU8, uint8_t{200})
      .scalar("i8", kI8, int8_t{-100})
      .scalar("u16", kU16, uint16_t{60000})
      .scalar("i16", kI16, int16_t{-30000})
      .scalar("u32", kU32, uint32_t{4000000000})
      .scalar("i32", kI32, int32_t{-2000000000})
      .scalar("f32", kF32, 0.5f)
      .scalar("yes", kBool, uint8_t{1})
      .scalar("no", kBool, uint8_t{0})
      .text("text", "grüße")
      .text("empty", "")
      .scalar("u64", kU64, uint64_t{1} << 62)
      .scalar("i64", kI64, std::numeric_limits<int64_t>::min())
      .scalar("f64", kF64, 1e300)
      .texts("texts", {"a", "", "bc"})
      .array<float>("floats", kF32, {1.5f, -2.0f})
      .array<double>("doubles", kF64, {0.25, 4.0})
      .array<int32_t>("ints", kI32, {-1, 2, 3})
      .array<float>("nothing", kF32, {});
  return raw;
}

ModelFile parse(const std::vector<uint8_t>& bytes) {
  auto file = parse_gguf(bytes, "test.gguf");
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  return file.ok() ? std::move(file).value() : ModelFile();
}

template <class T>
std::string error_of(const Result<T>& result) {
  if (result.ok()) return "no error";
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
  return result.error().message;
}

class Gguf : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Versions, Gguf, testing::Values(2u, 3u),
                         testing::PrintToStringParamName());

TEST_P(Gguf, ReadsEveryValueBack) {
  RawGguf raw = every_type();
  raw.version = GetParam();
  const auto bytes = raw.bytes();
  const ModelFile file = parse(bytes);
  EXPECT_EQ(file.path(), "test.gguf");
  EXPECT_EQ(file.file_bytes(), bytes.size());
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_EQ(**file.get_int("u8"), 200);
  EXPECT_EQ(**file.get_int("i8"), -100);
  EXPECT_EQ(**file.get_int("u16"), 60000);
  EXPECT_EQ(**file.get_int("i16"), -30000);
  EXPECT_EQ(**file.get_int("u32"), 4000000000);
  EXPECT_EQ(**file.get_int("i32"), -2000000000);
  EXPECT_EQ(**file.get_int("u64"), int64_t{1} << 62);
  EXPECT_EQ(**file.get_int("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(**file.get_float("f32"), 0.5);
  EXPECT_EQ(**file.get_float("f64"), 1e300);
  EXPECT_TRUE(**file.get_bool("yes"));
  EXPECT_FALSE(**file.get_bool("no"));
  EXPECT_EQ(**file.get_string("text"), "grüße");
  EXPECT_EQ(**file.get_string("empty"), "");
  EXPECT_THAT(*file.get_strings("texts"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(*file.get_floats("floats"), ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(*file.get_floats("doubles"), ElementsAre(0.25f, 4.0f));
  EXPECT_THAT(*file.get_floats("nothing"), ElementsAre());
  EXPECT_THAT(*file.get_ints("ints"), ElementsAre(-1, 2, 3));
}

TEST_P(Gguf, ReadsTensorsBack) {
  RawGguf raw;
  raw.version = GetParam();
  raw.text("general.name", "three tensors")
      .tensor({"matrix", {64, 3}, 8, 0})        // Q8_0: 2 blocks of 34 bytes a row
      .tensor({"vector", {5}, 0, 224})          // F32, after 204 bytes and padding
      .tensor({"four", {2, 3, 1, 2}, 1, 256});  // F16, 24 bytes
  for (int i = 0; i < 280; ++i) raw.data.push_back(static_cast<uint8_t>(i));
  const auto bytes = raw.bytes();
  const ModelFile file = parse(bytes);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(test::inconsistency(file, bytes), "");
  const uint8_t* data = bytes.data() + bytes.size() - 280;

  const ModelTensor& matrix = *file.find_tensor("matrix");
  EXPECT_STREQ(matrix.format->name, "Q8_0");
  EXPECT_EQ(matrix.dims, 2);
  EXPECT_THAT(matrix.shape, ElementsAre(64, 3, 1, 1));
  EXPECT_EQ(matrix.rows(), 3);
  EXPECT_EQ(matrix.data.data(), data);
  EXPECT_EQ(matrix.data.size(), 204u);

  const ModelTensor& vector = *file.find_tensor("vector");
  EXPECT_EQ(vector.dims, 1);
  EXPECT_EQ(vector.rows(), 1);
  EXPECT_EQ(vector.data.data(), data + 224);
  EXPECT_EQ(vector.data.size(), 20u);

  const ModelTensor& four = *file.find_tensor("four");
  EXPECT_THAT(four.shape, ElementsAre(2, 3, 1, 2));
  EXPECT_EQ(four.rows(), 6);
  EXPECT_EQ(four.data.data(), data + 256);
  EXPECT_EQ(four.data.size(), 24u);
  EXPECT_EQ(file.find_tensor("matri"), nullptr);
}

TEST(GgufAlignment, IsWhatTheFileSays) {
  for (const uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    RawGguf raw;
    raw.alignment = alignment;
    const uint64_t second = alignment < 4 ? 4 : alignment;
    raw.scalar("general.alignment", kU32, alignment)
        .tensor({"a", {1}, 0, 0})
        .tensor({"b", {1}, 0, second});
    raw.data.assign(second + 4, 7);
    const auto bytes = raw.bytes();
    const ModelFile file = parse(bytes);
    ASSERT_EQ(file.tensors().size(), 2u) << alignment;
    EXPECT_EQ(file.tensors()[1].data.data(), bytes.data() + bytes.size() - 4) << alignment;
  }
}

TEST(GgufGetters, AMissingKeyIsNoError) {
  const auto bytes = every_type().bytes();
  const ModelFile file = parse(bytes);
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_EQ(*file.get_int("absent"), std::nullopt);
  EXPECT_EQ(*file.get_float("absent"), std::nullopt);
  EXPECT_EQ(*file.get_bool("absent"), std::nullopt);
  EXPECT_EQ(*file.get_string("absent"), std::nullopt);
  EXPECT_THAT(*file.get_strings("absent"), ElementsAre());
  EXPECT_THAT(*file.get_floats("absent"), ElementsAre());
  EXPECT_THAT(*file.get_ints("absent"), ElementsAre());
}

// Each getter against a key of every type: what it does not read is an error that names the key.
TEST(GgufGetters, AnotherTypeIsAnErrorThatNamesTheKey) {
  const auto bytes = every_type().bytes();
  const ModelFile file = parse(bytes);
  const std::vector<std::string> keys = {"u8",    "i8",     "u16",     "i16", "u32", "i32",
                                         "f32",   "yes",    "text",    "u64", "i64", "f64",
                                         "texts", "floats", "doubles", "ints"};
  using Read = std::function<std::string(const std::string&)>;
  struct Getter {
    const char* name;
    std::vector<std::string> reads;
    Read read;
  };
  const std::vector<std::string> ints = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};
  std::vector<std::string> ints_too = ints;
  ints_too.push_back("ints");
  const std::vector<Getter> getters = {
      {"get_int", ints, [&](const auto& key) { return error_of(file.get_int(key)); }},
      {"get_float", {"f32", "f64"}, [&](const auto& key) { return error_of(file.get_float(key)); }},
      {"get_bool", {"yes"}, [&](const auto& key) { return error_of(file.get_bool(key)); }},
      {"get_string", {"text"}, [&](const auto& key) { return error_of(file.get_string(key)); }},
      {"get_strings", {"texts"}, [&](const auto& key) { return error_of(file.get_strings(key)); }},
      {"get_floats",
       {"floats", "doubles"},
       [&](const auto& key) { return error_of(file.get_floats(key)); }},
      {"get_ints", ints_too, [&](const auto& key) { return error_of(file.get_ints(key)); }},
  };
  for (const Getter& getter : getters) {
    for (const std::string& key : keys) {
      const bool reads = std::count(getter.reads.begin(), getter.reads.end(), key) > 0;
      const std::string error = getter.read(key);
      if (reads) {
        EXPECT_EQ(error, "no error") << getter.name << " of " << key;
      } else {
        EXPECT_THAT(error, HasSubstr("test.gguf': key '" + key + "' is not a")) << getter.name;
      }
    }
  }
}

TEST(GgufGetters, NumbersThatDoNotFitAreRefused) {
  RawGguf raw;
  raw.scalar("huge", kU64, uint64_t{1} << 63)
      .scalar("nan", kF32, std::numeric_limits<float>::quiet_NaN())
      .scalar("infinite", kF64, -std::numeric_limits<double>::infinity())
      .array<uint64_t>("huge list", kU64, {1, uint64_t{1} << 63});
  const auto bytes = raw.bytes();
  const ModelFile file = parse(bytes);
  EXPECT_THAT(error_of(file.get_int("huge")), HasSubstr("'huge' is not a number below 2^63"));
  EXPECT_THAT(error_of(file.get_ints("huge")), HasSubstr("'huge' is not a number below 2^63"));
  EXPECT_THAT(error_of(file.get_ints("huge list")), HasSubstr("'huge list' is not"));
  EXPECT_THAT(error_of(file.get_float("nan")), HasSubstr("'nan' is not a finite number"));
  EXPECT_THAT(error_of(file.get_float("infinite")), HasSubstr("'infinite' is not a finite"));
}

TEST(GgufGetters, EveryKindOfWholeNumberFillsAList) {
  RawGguf raw;
  raw.scalar("one", kI16, int16_t{-7})
      .array<uint8_t>("u8s", kU8, {0, 255})
      .array<int8_t>("i8s", kI8, {-128, 127})
      .array<uint16_t>("u16s", kU16, {65535})
      .array<int16_t>("i16s", kI16, {-32768})
      .array<uint32_t>("u32s", kU32, {4294967295u})
      .array<uint8_t>("bools", kBool, {0, 1, 2})
      .array<uint64_t>("u64s", kU64, {5})
      .array<int64_t>("i64s", kI64, {-5});
  const auto bytes = raw.bytes();
  const ModelFile file = parse(bytes);
  EXPECT_THAT(*file.get_ints("one"), ElementsAre(-7));
  EXPECT_THAT(*file.get_ints("u8s"), ElementsAre(0, 255));
  EXPECT_THAT(*file.get_ints("i8s"), ElementsAre(-128, 127));
  EXPECT_THAT(*file.get_ints("u16s"), ElementsAre(65535));
  EXPECT_THAT(*file.get_ints("i16s"), ElementsAre(-32768));
  EXPECT_THAT(*file.get_ints("u32s"), ElementsAre(4294967295));
  EXPECT_THAT(*file.get_ints("bools"), ElementsAre(0, 1, 1));
  EXPECT_THAT(*file.get_ints("u64s"), ElementsAre(5));
  EXPECT_THAT(*file.get_ints("i64s"), ElementsAre(-5));
}

TEST(GgufOpen, SaysWhyAFileCannotBeOpened) {
  const std::string missing = testing::TempDir() + "no_such_model.gguf";
  const auto file = ModelFile::open(missing);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr(missing));
  const auto folder = ModelFile::open(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message, HasSubstr("is a folder without config.json"));
}

}  // namespace
}  // namespace wok
