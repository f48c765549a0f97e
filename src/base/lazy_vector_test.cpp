// Memory that is sized for the most, taken as it is written, and given back.
#include "base/lazy_vector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace wok {
namespace {

// Resident pages of [begin, begin + bytes), as /proc/self/pagemap tells.
size_t resident_pages(const void* begin, size_t bytes) {
  std::vector<uint64_t> entries(bytes / 4096);
  const int fd = ::open("/proc/self/pagemap", O_RDONLY);
  const auto offset = reinterpret_cast<uintptr_t>(begin) / 4096 * sizeof(uint64_t);
  const auto size = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
  EXPECT_EQ(::pread(fd, entries.data(), static_cast<size_t>(size), static_cast<off_t>(offset)),
            size);
  ::close(fd);
  return static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(), [](uint64_t e) { return e >> 63 != 0; }));
}

#ifdef __SANITIZE_THREAD__
constexpr bool kCallocWrites = true;
#else
constexpr bool kCallocWrites = false;
#endif

TEST(LazyVector, IsZeroAndTakesNoMemoryBeforeItIsWritten) {
  constexpr size_t kCount = size_t{4} << 20;
  LazyVector<float> numbers;
  numbers.resize(kCount);
  if (!kCallocWrites) {
    EXPECT_LT(resident_pages(numbers.data(), kCount * sizeof(float)), 1024u);
  }
  EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(), [](float x) { return x == 0; }));
  EXPECT_GT(resident_pages(numbers.data(), kCount * sizeof(float)), 4000u);  // now it was read
  numbers[kCount - 1] = 1;
  const LazyVector<float> copy = numbers;
  EXPECT_EQ(copy[kCount - 1], 1);
  EXPECT_EQ(LazyVector<float>(3, 2.5f)[2], 2.5f);
}

TEST(MappedFile, GivesPagesBackAndReadsThemAgain) {
  const std::string path = testing::TempDir() + "wok_release_" + std::to_string(::getpid());
  const std::string text(100'000, 'x');
  std::ofstream(path) << text;
  const auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened.ok());
  const auto bytes = opened->bytes();
  const auto sum = [&] { return std::count(bytes.begin(), bytes.end(), 'x'); };
  ASSERT_EQ(sum(), 100'000);
  const size_t all = resident_pages(bytes.data(), bytes.size());
  ASSERT_GT(all, 20u);
  opened->release_pages(bytes.subspan(4000, 50'000));  // pages 1 to 12 as a whole
  EXPECT_EQ(resident_pages(bytes.data(), bytes.size()), all - 12);
  opened->release_pages(bytes);
  EXPECT_EQ(resident_pages(bytes.data(), bytes.size()), 0u);
  EXPECT_EQ(sum(), 100'000);

  // Dropping pages of anonymous memory would empty them.
  const std::vector<uint8_t> other(100'000, 7);
  opened->release_pages(other);
  EXPECT_EQ(std::count(other.begin(), other.end(), 7), 100'000);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace wok
