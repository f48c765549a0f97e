// Files that are cut off, damaged or made to hurt: each a clear error, or a file that holds
// together; never a read outside the bytes (the sanitizer builds run these tests, too).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "tests/support/raw_gguf.h"
#include "tests/support/tiny_model.h"

namespace wok {
namespace {

using test::RawGguf;
using test::RawTensor;
using testing::AllOf;
using testing::HasSubstr;

enum : uint32_t { kU8 = 0, kU32 = 4, kI32 = 5, kF32 = 6, kString = 8, kArray = 9, kU64 = 10 };
constexpr uint64_t kTooMany = uint64_t{1} << 63;

// Parses a copy that ends exactly where the bytes do, so that a read beyond them is seen.
Result<std::string> verdict(std::span<const uint8_t> bytes) {
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const std::span<const uint8_t> exact(copy.get(), bytes.size());
  WOK_TRY(file, parse_gguf(exact, "bad.gguf"));
  return test::inconsistency(file, exact);
}

Error refusal(const RawGguf& raw) {
  const auto result = verdict(raw.bytes());
  EXPECT_FALSE(result.ok()) << "accepted: " << result.value();
  if (result.ok()) return {};
  EXPECT_THAT(result.error().message, HasSubstr("'bad.gguf'"));
  return result.error();
}

void expect_invalid(const RawGguf& raw, const std::string& reason) {
  const Error error = refusal(raw);
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.message, HasSubstr(reason));
}

struct Tiny {
  std::vector<uint8_t> bytes;
  size_t header = 0;  // bytes before the data
};

Tiny tiny() {
  test::TinyShape shape;
  shape.layers = 1;
  shape.vocab = 100;
  Tiny tiny;
  tiny.bytes = test::TinyWriter(shape, 1).bytes();
  const auto file = parse_gguf(tiny.bytes, "tiny.gguf");
  WOK_CHECK(file.ok(), "an undamaged file");
  tiny.header = static_cast<size_t>(file->tensors()[0].data.data() - tiny.bytes.data());
  return tiny;
}

TEST(GgufDamage, CutOffAnywhereIsAnError) {
  const Tiny whole = tiny();
  ASSERT_GT(whole.header, 1000u);
  ASSERT_GT(whole.bytes.size(), whole.header + 10000);
  const std::span<const uint8_t> bytes = whole.bytes;
  for (size_t size = 0; size < bytes.size();) {
    const auto result = verdict(bytes.first(size));
    ASSERT_FALSE(result.ok()) << "accepted when cut at " << size;
    ASSERT_EQ(result.error().kind, ErrorKind::kInvalid) << size;
    ASSERT_THAT(result.error().message, HasSubstr("is not a valid GGUF file")) << size;
    // Every byte of the header; then samples, the last one byte short of the whole.
    size += size < whole.header ? 1 : std::clamp<size_t>((bytes.size() - size) / 8, 1, 97);
  }
  EXPECT_EQ(verdict(bytes).value(), "");
}

TEST(GgufDamage, AFlippedBitIsAnErrorOrAFileThatHoldsTogether) {
  const Tiny whole = tiny();
  auto bytes = whole.bytes;
  std::mt19937 random(7);
  int accepted = 0, refused = 0;
  for (size_t at = 0; at < whole.header; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      if (at >= 600 && random() % 4 != 0) continue;
      bytes[at] ^= static_cast<uint8_t>(1 << bit);
      const auto result = verdict(bytes);
      bytes[at] = whole.bytes[at];
      if (!result.ok()) {
        ++refused;
        ASSERT_NE(result.error().message, "");
        continue;
      }
      ++accepted;
      ASSERT_EQ(result.value(), "") << "bit " << bit << " of byte " << at;
    }
  }
  // Texts and numbers may change unnoticed, structure may not.
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

TEST(GgufDamage, BytesOverwrittenAtRandomAreAnErrorOrAFileThatHoldsTogether) {
  const Tiny whole = tiny();
  std::mt19937 random(8);
  for (int round = 0; round < 3000; ++round) {
    auto bytes = whole.bytes;
    for (int i = 0, count = 1 + static_cast<int>(random() % 4); i < count; ++i) {
      constexpr uint8_t kNasty[] = {0, 1, 0x7f, 0x80, 0xff};
      const size_t at = random() % whole.header;
      const size_t run = 1 + random() % 8;
      const uint8_t value = kNasty[random() % 5];
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(run, whole.header - at),
                  value);
    }
    const auto result = verdict(bytes);
    if (result.ok()) {
      ASSERT_EQ(result.value(), "") << round;
    }
  }
}

TEST(GgufHeader, OtherFilesAndVersions) {
  RawGguf raw;
  raw.text("general.name", "x");
  raw.magic = 0x04034b50;  // a zip file
  expect_invalid(raw, "does not begin with \"GGUF\"");
  raw.magic = 0x46554747;
  for (const uint32_t version : {0x02000000u, 0x03000000u}) {
    raw.version = version;
    const Error error = refusal(raw);
    EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr("big-endian"));
  }
  for (const uint32_t version : {1u, 4u, 99u, 0xffffffffu}) {
    raw.version = version;
    const Error error = refusal(raw);
    EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
    EXPECT_THAT(error.message, AllOf(HasSubstr("version " + std::to_string(version)),
                                     HasSubstr("wok reads versions 2 and 3")));
  }
}

TEST(GgufHeader, CountsAreComparedWithTheFilesSize) {
  for (const uint64_t count : {uint64_t{20}, uint64_t{1} << 32, kTooMany, ~uint64_t{0}}) {
    RawGguf tensors, keys;
    tensors.claimed_tensors = count;
    expect_invalid(tensors, "claims " + std::to_string(count) + " tensors");
    keys.claimed_keys = count;
    expect_invalid(keys, "claims " + std::to_string(count) + " keys");
  }
}

TEST(ModelKeys, LengthsAreComparedWithTheFilesSize) {
  for (const uint64_t length : {uint64_t{5}, uint64_t{1} << 30}) {
    expect_invalid(RawGguf().text_claiming("key", "four", length), "ends inside a string value");
    expect_invalid(RawGguf().array<uint8_t>("key", kU8, {1, 2, 3, 4}, length), "ends inside 'key'");
    expect_invalid(RawGguf().array<uint64_t>("key", kU64, {1}, length), "ends inside 'key'");
    expect_invalid(RawGguf().array<uint64_t>("key", kString, {0}, length), "ends inside 'key'");
  }
  for (const uint64_t length : {(uint64_t{1} << 30) + 1, kTooMany, ~uint64_t{0}}) {
    const std::string number = std::to_string(length);
    expect_invalid(RawGguf().text_claiming("key", "four", length), "length " + number);
    expect_invalid(RawGguf().array<uint8_t>("key", kU8, {1}, length), number + " elements");
    expect_invalid(RawGguf().array<uint64_t>("key", kString, {0}, length), number + " elements");
  }
  // The strings of an array have lengths of their own.
  expect_invalid(RawGguf().array<uint64_t>("key", kString, {kTooMany}), "has length");
  expect_invalid(RawGguf().array<uint64_t>("key", kString, {9}), "ends inside a string");
}

TEST(ModelKeys, UnknownValueTypesAndNestedArrays) {
  expect_invalid(RawGguf().scalar("key", 13, uint64_t{0}), "'key' has unknown value type 13");
  expect_invalid(RawGguf().scalar("key", 0xffffffff, uint64_t{0}), "unknown value type 4294967295");
  expect_invalid(RawGguf().array<uint32_t>("key", kArray, {0, 0, 0}), "an array of value type 9");
  expect_invalid(RawGguf().array<uint32_t>("key", 77, {0, 0, 0}), "an array of value type 77");
}

TEST(ModelKeys, TheSameKeyTwice) {
  expect_invalid(RawGguf().text("key", "a").text("other", "b").text("key", "c"),
                 "key 'key' is there twice");
}

TEST(ModelKeys, AlignmentMustBeAPowerOfTwo) {
  for (const uint32_t alignment : {0u, 3u, 24u, (1u << 20) + 1, 1u << 21, 0xffffffffu}) {
    expect_invalid(RawGguf().scalar("general.alignment", kU32, alignment), "not a power of two");
  }
  expect_invalid(RawGguf().text("general.alignment", "32"), "not a power of two");
  expect_invalid(RawGguf().scalar("general.alignment", kI32, -32), "not a power of two");
  // The biggest that is allowed, in a file that is smaller.
  RawGguf raw;
  raw.scalar("general.alignment", kU32, 1u << 20).tensor({"a", {8}});
  raw.data.assign(32, 0);
  expect_invalid(raw, "ends before its data");
}

// One tensor, with room for 1 KiB of data.
RawGguf one(const RawTensor& tensor) {
  RawGguf raw;
  raw.tensor(tensor);
  raw.data.assign(1024, 1);
  return raw;
}

TEST(ModelTensors, NamesHaveAtMost63Bytes) {
  EXPECT_EQ(verdict(one({std::string(63, 'n'), {8}}).bytes()).value(), "");
  expect_invalid(one({std::string(64, 'n'), {8}}), "a tensor's name has length 64");
}

TEST(ModelTensors, TheSameNameTwice) {
  RawGguf raw = one({"same", {8}});
  raw.tensor({"same", {8}, 0, 32});
  expect_invalid(raw, "tensor 'same' is there twice");
}

TEST(ModelTensors, Dimensions) {
  expect_invalid(one({"t", {}}), "has 0 dimensions");
  expect_invalid(one({"t", {1, 1, 1, 1, 1}}), "has 5 dimensions");
  expect_invalid(one({"t", {0}}), "dimension 0 of size 0");
  expect_invalid(one({"t", {8, -1}}), "dimension 1 of size -1");
  expect_invalid(one({"t", {INT64_MIN}}), "dimension 0 of size");
  EXPECT_EQ(verdict(one({"t", {2, 2, 2, 2}}).bytes()).value(), "");
}

TEST(ModelTensors, SizesThatOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 32;
  expect_invalid(one({"t", {kHuge, kHuge}}), "tensor 't' is too big");
  expect_invalid(one({"t", {2, kHuge, kHuge / 2, 2}}), "tensor 't' is too big");
  // The elements can be counted in 63 bits, their bytes cannot, in the row or in all rows: a size
  // that wraps around would look like a small one.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {int64_t{1} << 62}, {INT64_MAX}, {kHuge, kHuge / 4}, {1, int64_t{1} << 62}}) {
    expect_invalid(one({"t", shape}), "tensor 't'");
    expect_invalid(one({"t", shape, 1}), "tensor 't'");  // F16
  }
  expect_invalid(one({"t", {1 << 20, 1 << 20}}), "reaches past the end of the file");
}

TEST(ModelTensors, RowsAreWholeBlocks) {
  expect_invalid(one({"t", {33}, 2}), "no multiple of Q4_0's block of 32");
  expect_invalid(one({"t", {16, 2}, 8}), "no multiple of Q8_0's block of 32");
  expect_invalid(one({"t", {128, 2}, 12}), "no multiple of Q4_K's block of 256");
  EXPECT_EQ(verdict(one({"t", {256}, 12}).bytes()).value(), "");
}

TEST(ModelTensors, PlacesAreAlignedAndInOrderWithoutGap) {
  RawGguf raw = one({"a", {8}});
  expect_invalid(one({"a", {8}, 0, 32}), "tensor 'a' lies at offset 32, expected 0");
  for (const uint64_t offset : {1u, 16u, 33u}) {
    RawGguf bad = raw;
    bad.tensor({"b", {8}, 0, offset});
    expect_invalid(bad, "not aligned to 32");
  }
  for (const uint64_t offset : {0u, 64u, 992u}) {  // over the first; after a gap
    RawGguf bad = raw;
    bad.tensor({"b", {8}, 0, offset});
    expect_invalid(bad, "tensor 'b' lies at offset " + std::to_string(offset) + ", expected 32");
  }
  raw.tensor({"b", {8}, 0, 32});
  EXPECT_EQ(verdict(raw.bytes()).value(), "");
}

TEST(ModelTensors, LieInsideTheFile) {
  EXPECT_EQ(verdict(one({"t", {256}}).bytes()).value(), "");
  expect_invalid(one({"t", {257}}), "tensor 't' reaches past the end of the file");
  expect_invalid(one({"t", {256, 2}}), "tensor 't' reaches past the end of the file");
  // After a tensor of unknown size any place is possible, but not one that wraps around.
  for (const uint64_t offset : {uint64_t{1024}, kTooMany, ~uint64_t{31}}) {
    RawGguf raw = one({"unknown", {8}, 37});
    raw.tensor({"t", {8}, 0, offset});
    expect_invalid(raw, "tensor 't' reaches past the end of the file");
  }
}

TEST(ModelTensors, UnknownTypesAreKeptWithoutData) {
  for (const uint32_t type : {3u + 1, 15u, 37u, 1000u, 0xffffffffu}) {
    RawGguf raw;
    raw.tensor({"a", {8}}).tensor({"unknown", {100, 3}, type, 32}).tensor({"b", {8}, 0, 512});
    raw.data.assign(544, 1);
    const auto bytes = raw.bytes();
    const auto file = parse_gguf(bytes, "odd.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(test::inconsistency(*file, bytes), "");
    const ModelTensor& tensor = *file->find_tensor("unknown");
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(tensor.format, nullptr);
    EXPECT_TRUE(tensor.data.empty());
    EXPECT_EQ(file->find_tensor("b")->data.data(), bytes.data() + bytes.size() - 32);
  }
  RawGguf raw = one({"unknown", {8}, 37, 64});
  expect_invalid(raw, "tensor 'unknown' lies at offset 64, expected 0");
  raw = one({"unknown", {8}, 37});
  raw.tensor({"b", {8}, 0, 32}).tensor({"c", {8}, 0, 32});
  expect_invalid(raw, "tensor 'c' lies at offset 32, expected 64");
}

}  // namespace
}  // namespace wok
