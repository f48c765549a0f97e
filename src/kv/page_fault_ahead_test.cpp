#include "kv/page_fault_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace wok {
namespace {

constexpr int32_t kPages = 4000;

// How many of the pool's first bytes are resident.
size_t resident_bytes(const PageMemory& memory) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t bytes = memory.shape().page_bytes() * kPages;
  std::vector<unsigned char> there((bytes + page - 1) / page);
  EXPECT_EQ(::mincore(memory.view(0, 0).pool, bytes, there.data()), 0);
  size_t count = 0;
  for (const unsigned char one : there) count += one & 1;
  return count * page;
}

TEST(PageFaultAhead, StaysAheadOfUseAndNoFurther) {
  auto memory = PageMemory::create({2, 2, 64}, kPages);  // 16 KiB a page
  ASSERT_TRUE(memory.ok());
  PageFaultAhead ahead(*memory);
  EXPECT_EQ(resident_bytes(*memory), 0u);
  const size_t page_bytes = memory->shape().page_bytes();
  for (const int32_t used : {1, 700, 1500}) {
    ahead.follow(used);
    for (int i = 0; i < 5000 && ahead.ready_pages() < used; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_GE(ahead.ready_pages(), used);
    EXPECT_GE(resident_bytes(*memory), page_bytes * used);
    EXPECT_LE(resident_bytes(*memory), page_bytes * used + (24 << 20));
  }
  ahead.follow(kPages);  // the end of the pool is the end
  for (int i = 0; i < 5000 && ahead.ready_pages() < kPages; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ahead.ready_pages(), kPages);
}

}  // namespace
}  // namespace wok
