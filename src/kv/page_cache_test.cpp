#include "kv/page_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <vector>

namespace wok {
namespace {

using Tokens = std::array<int32_t, kPageTokens>;

Tokens page_of(int32_t value) {
  Tokens tokens;
  tokens.fill(value);
  return tokens;
}

TEST(PageCache, SharesAPrefixAndKeepsItAfterRelease) {
  PageCache cache(4);
  const PageCache::Node root{-1, 0};
  const int32_t a = cache.allocate();
  EXPECT_EQ(cache.insert(root, a, page_of(1), true), a);
  const int32_t b = cache.allocate();
  EXPECT_EQ(cache.insert({a, 0}, b, page_of(2), true), b);
  cache.release(b);
  cache.release(a);
  EXPECT_EQ(cache.cached_pages(), 2);
  bool ready = false;
  EXPECT_EQ(cache.find(root, page_of(1), &ready), a);
  EXPECT_TRUE(ready);
  EXPECT_EQ(cache.find({a, 0}, page_of(2), &ready), b);
  EXPECT_EQ(cache.find(root, page_of(2), &ready), -1);
  EXPECT_EQ(cache.check(), "");
}

TEST(PageCache, NamespacesNeverMeet) {
  PageCache cache(4);
  const int32_t a = cache.allocate();
  cache.insert({-1, 7}, a, page_of(1), true);
  bool ready = false;
  EXPECT_EQ(cache.find({-1, 8}, page_of(1), &ready), -1);
  EXPECT_EQ(cache.find({-1, 7}, page_of(1), &ready), a);
}

TEST(PageCache, EvictsTheLeastRecentlyUsedLeafAndNeverAHeldPage) {
  PageCache cache(3);
  const PageCache::Node root{-1, 0};
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < 3; ++i) {
    pages.push_back(cache.allocate());
    cache.insert(root, pages[i], page_of(i), true);
  }
  EXPECT_EQ(cache.allocate(), -1);  // all are held
  cache.release(pages[1]);
  cache.release(pages[0]);
  EXPECT_EQ(cache.allocate(), pages[1]);
  EXPECT_EQ(cache.allocate(), pages[0]);
  EXPECT_EQ(cache.allocate(), -1);
  EXPECT_EQ(cache.check(), "");
}

TEST(PageCache, ASecondPageUnderTheSameKeyStaysOut) {
  PageCache cache(2);
  const PageCache::Node root{-1, 0};
  const int32_t a = cache.allocate(), b = cache.allocate();
  cache.insert(root, a, page_of(1), true);
  EXPECT_EQ(cache.insert(root, b, page_of(1), true), a);
  cache.release(b);
  EXPECT_EQ(cache.free_pages(), 1);
  EXPECT_EQ(cache.check(), "");
}

// Random requests that walk, grow, finish and are dropped: the pool sums up after every operation.
TEST(PageCache, PoolSumsUpAfterRandomOperations) {
  std::mt19937 random(11);
  PageCache cache(40);
  struct Holder {
    PageCache::Node at;
    std::vector<int32_t> pages;
  };
  std::vector<Holder> holders;
  for (int step = 0; step < 20000; ++step) {
    const uint32_t dice = random() % 10;
    if (holders.empty() || (dice == 0 && holders.size() < 8)) {
      holders.push_back({{-1, random() % 2}, {}});
    } else if (dice < 7) {
      Holder& h = holders[random() % holders.size()];
      const Tokens tokens = page_of(static_cast<int32_t>(random() % 3));
      bool ready = false;
      const int32_t found = cache.find(h.at, tokens, &ready);
      if (found >= 0) {
        cache.retain(found);
        h.pages.push_back(found);
        h.at.page = found;
      } else if (const int32_t page = cache.allocate(); page >= 0) {
        ASSERT_EQ(cache.insert(h.at, page, tokens, false), page);
        cache.set_ready(page);
        h.pages.push_back(page);
        h.at.page = page;
      }
    } else {
      const size_t i = random() % holders.size();
      for (auto p = holders[i].pages.rbegin(); p != holders[i].pages.rend(); ++p) {
        cache.release(*p);
      }
      holders.erase(holders.begin() + static_cast<std::ptrdiff_t>(i));
    }
    ASSERT_EQ(cache.check(), "") << "after operation " << step;
  }
  for (Holder& h : holders) {
    for (auto p = h.pages.rbegin(); p != h.pages.rend(); ++p) cache.release(*p);
  }
  EXPECT_EQ(cache.held_pages(), 0);
  cache.clear_cached();
  EXPECT_EQ(cache.free_pages(), 40);
  EXPECT_EQ(cache.check(), "");
}

}  // namespace
}  // namespace wok
