#include "kv/page_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace wok {

PageCache::PageCache(int32_t pages) : entries_(pages), free_(pages), free_count_(pages) {
  WOK_CHECK(pages > 0, "a cache has pages");
  buckets_.assign(std::bit_ceil(static_cast<size_t>(pages) * 2), -1);
  for (int32_t i = 0; i < pages; ++i) free_[i] = pages - 1 - i;  // page 0 comes first
}

size_t PageCache::bucket_of(const Node& parent, std::span<const int32_t> tokens) const {
  uint64_t h = parent.page >= 0 ? static_cast<uint64_t>(parent.page)
                                : ~parent.name_space * 0x9e3779b97f4a7c15u;
  for (const int32_t token : tokens) {
    h = (h ^ static_cast<uint32_t>(token)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h & (buckets_.size() - 1);
}

int32_t PageCache::find(const Node& parent, std::span<const int32_t> tokens, bool* ready) const {
  for (int32_t p = buckets_[bucket_of(parent, tokens)]; p >= 0; p = entries_[p].next_in_bucket) {
    const Entry& e = entries_[p];
    if (e.parent == parent.page && (parent.page >= 0 || e.name_space == parent.name_space) &&
        std::equal(tokens.begin(), tokens.end(), e.tokens)) {
      *ready = e.ready;
      return p;
    }
  }
  return -1;
}

int32_t PageCache::insert(const Node& parent, int32_t page, std::span<const int32_t> tokens,
                          bool ready) {
  WOK_CHECK(tokens.size() == kPageTokens, "only whole pages enter the tree");
  bool other_ready = false;
  if (const int32_t other = find(parent, tokens, &other_ready); other >= 0) return other;
  Entry& e = entries_[page];
  WOK_CHECK(e.references > 0 && !e.in_tree, "a page enters the tree once, while it is held");
  e.in_tree = true;
  e.ready = ready;
  e.parent = parent.page;
  e.name_space = parent.page >= 0 ? entries_[parent.page].name_space : parent.name_space;
  std::copy(tokens.begin(), tokens.end(), e.tokens);
  const size_t bucket = bucket_of(parent, tokens);
  e.next_in_bucket = buckets_[bucket];
  buckets_[bucket] = page;
  if (parent.page >= 0) {
    Entry& p = entries_[parent.page];
    WOK_CHECK(p.in_tree && p.references > 0, "whoever holds a node holds its ancestors");
    ++p.children;
  }
  return page;
}

void PageCache::set_ready(int32_t page) {
  entries_[page].ready = true;
}

void PageCache::unlink_from_tree(int32_t page) {
  Entry& e = entries_[page];
  WOK_CHECK(e.in_tree && e.children == 0, "only leaves leave the tree");
  if (e.listed) unlist_leaf(page);
  const Node parent{e.parent, e.name_space};
  int32_t* link = &buckets_[bucket_of(parent, {e.tokens, kPageTokens})];
  while (*link != page) link = &entries_[*link].next_in_bucket;
  *link = e.next_in_bucket;
  e.in_tree = false;
  e.ready = false;
  if (e.parent >= 0) {
    Entry& p = entries_[e.parent];
    --p.children;
    if (is_cached_leaf(p)) list_leaf(e.parent);
  }
  e.parent = -1;
}

void PageCache::remove(int32_t page) {
  WOK_CHECK(entries_[page].references > 0, "only a held page is taken out by hand");
  unlink_from_tree(page);
}

// Keeps the list ordered by last use. A released leaf is the newest; a parent that became a leaf
// by eviction is about as old as its child was, so the walk from the old end is short.
void PageCache::list_leaf(int32_t page) {
  Entry& e = entries_[page];
  int32_t newer = -1;
  if (newest_ >= 0 && entries_[newest_].last_use > e.last_use) {
    newer = oldest_;
    while (newer >= 0 && entries_[newer].last_use <= e.last_use) newer = entries_[newer].newer;
  }
  e.newer = newer;
  e.older = newer >= 0 ? entries_[newer].older : newest_;
  (e.older >= 0 ? entries_[e.older].newer : oldest_) = page;
  (newer >= 0 ? entries_[newer].older : newest_) = page;
  e.listed = true;
}

void PageCache::unlist_leaf(int32_t page) {
  Entry& e = entries_[page];
  (e.older >= 0 ? entries_[e.older].newer : oldest_) = e.newer;
  (e.newer >= 0 ? entries_[e.newer].older : newest_) = e.older;
  e.older = e.newer = -1;
  e.listed = false;
}

void PageCache::push_free(int32_t page) {
  free_[free_count_++] = page;
}

int32_t PageCache::allocate() {
  int32_t page;
  if (free_count_ > 0) {
    page = free_[--free_count_];
  } else if (oldest_ >= 0) {
    page = oldest_;
    unlink_from_tree(page);
    --cached_count_;
  } else {
    return -1;
  }
  used_pages_ = std::max(used_pages_, page + 1);
  entries_[page].references = 1;
  entries_[page].children = 0;
  return page;
}

void PageCache::retain(int32_t page) {
  Entry& e = entries_[page];
  if (e.references == 0) {
    WOK_CHECK(e.in_tree, "a page without references is held through the tree only");
    if (e.listed) unlist_leaf(page);
    --cached_count_;
  }
  ++e.references;
}

void PageCache::release(int32_t page) {
  Entry& e = entries_[page];
  WOK_CHECK(e.references > 0, "a page is released as often as it was held");
  e.last_use = ++clock_;
  if (--e.references > 0) return;
  if (!e.in_tree) {
    push_free(page);
    return;
  }
  ++cached_count_;
  if (e.children == 0) list_leaf(page);
}

void PageCache::clear_cached() {
  while (oldest_ >= 0) {
    const int32_t page = oldest_;
    unlink_from_tree(page);
    --cached_count_;
    push_free(page);
  }
}

std::string PageCache::check() const {
  std::vector<int32_t> children(entries_.size(), 0);
  std::vector<bool> is_free(entries_.size(), false);
  for (int32_t i = 0; i < free_count_; ++i) is_free[free_[i]] = true;
  int32_t cached = 0, held = 0, free_pages_seen = 0;
  for (int32_t p = 0; p < pages(); ++p) {
    const Entry& e = entries_[p];
    if (is_free[p]) {
      ++free_pages_seen;
      if (e.references != 0 || e.in_tree) return fmt::format("page {} is free and in use", p);
      continue;
    }
    if (e.references > 0)
      ++held;
    else
      ++cached;
    if (e.references == 0 && !e.in_tree) return fmt::format("page {} is lost", p);
    if (e.listed != is_cached_leaf(e)) return fmt::format("page {}: wrong in the leaf list", p);
    if (e.in_tree && e.references == 0 && !e.ready) return fmt::format("page {} never ready", p);
    if (e.in_tree && e.parent >= 0) {
      ++children[e.parent];
      if (!entries_[e.parent].in_tree) return fmt::format("page {}: parent left the tree", p);
      if (e.references > 0 && entries_[e.parent].references == 0) {
        return fmt::format("page {} is held, its parent is not", p);
      }
    }
  }
  for (int32_t p = 0; p < pages(); ++p) {
    if (children[p] != entries_[p].children) return fmt::format("page {}: wrong child count", p);
  }
  uint64_t last = 0;
  for (int32_t p = oldest_; p >= 0; p = entries_[p].newer) {
    if (entries_[p].last_use < last) return fmt::format("page {}: list out of order", p);
    last = entries_[p].last_use;
  }
  if (free_pages_seen != free_count_ || cached != cached_count_ || held != held_pages()) {
    return fmt::format("free {} + cached {} + held {} do not sum to {}", free_count_, cached_count_,
                       held, pages());
  }
  return "";
}

}  // namespace wok
