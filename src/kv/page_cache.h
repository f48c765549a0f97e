// Which page belongs to whom: a free list, reference counts, and the tree of shared prefixes.
//
// The tree is a radix tree whose edges are one page long: a node *is* a page, its key is its parent
// and the kPageTokens tokens it holds, so no node is ever split and a page number names a node. All
// state is in arrays reserved at start; no operation allocates. Used by the engine thread only.
//
// A page is free, or held (references > 0), or cached (in the tree, no reference). A held page may
// be in the tree too. Whoever holds a node holds its ancestors, so a cached node's descendants are
// all cached, and every cached page can be had back by evicting leaves, least recently used first.
// Invariant: free + cached + held = pages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace wok {

class PageCache {
 public:
  // A place in the tree: a page, or the root of a namespace.
  struct Node {
    int32_t page = -1;        // -1: the root of `name_space`
    uint64_t name_space = 0;  // tenants with different ones never meet
  };

  explicit PageCache(int32_t pages);

  // A page with one reference: a free one, else the least recently used cached leaf's. -1: none.
  int32_t allocate();
  void retain(int32_t page);
  void release(int32_t page);

  // The child of `parent` that holds `tokens` (kPageTokens of them), or -1. `ready` says whether
  // its keys and values are written: one that is not must not be read yet.
  int32_t find(const Node& parent, std::span<const int32_t> tokens, bool* ready) const;
  // Puts a held page into the tree below `parent`. Returns the page that is there under that key
  // afterwards: `page`, or one that was there before (then `page` stays out of the tree).
  int32_t insert(const Node& parent, int32_t page, std::span<const int32_t> tokens, bool ready);
  void set_ready(int32_t page);
  // Takes a page that never became ready, and has no children, out of the tree again.
  void remove(int32_t page);

  int32_t pages() const { return static_cast<int32_t>(entries_.size()); }
  int32_t free_pages() const { return free_count_; }
  int32_t cached_pages() const { return cached_count_; }
  int32_t held_pages() const { return pages() - free_count_ - cached_count_; }
  // Pages [0, used_pages()) are or have been in use: free ones come lowest first.
  int32_t used_pages() const { return used_pages_; }
  // What allocate() could give.
  int32_t available() const { return free_count_ + cached_count_; }

  // Drops every cached page.
  void clear_cached();

  // "" or the broken invariant; walks everything.
  std::string check() const;

 private:
  struct Entry {
    int32_t references = 0;
    bool in_tree = false;
    bool ready = false;
    int32_t children = 0;
    int32_t parent = -1;
    uint64_t name_space = 0;
    uint64_t last_use = 0;
    int32_t next_in_bucket = -1;
    int32_t older = -1, newer = -1;  // list of cached leaves; `listed` says whether it is in it
    bool listed = false;
    int32_t tokens[kPageTokens] = {};
  };

  size_t bucket_of(const Node& parent, std::span<const int32_t> tokens) const;
  void unlink_from_tree(int32_t page);
  void list_leaf(int32_t page);
  void unlist_leaf(int32_t page);
  void push_free(int32_t page);
  bool is_cached_leaf(const Entry& e) const {
    return e.in_tree && e.references == 0 && e.children == 0;
  }

  std::vector<Entry> entries_;
  std::vector<int32_t> free_;     // stack; free_count_ are in use
  std::vector<int32_t> buckets_;  // heads of chains by key
  int32_t free_count_ = 0, cached_count_ = 0, used_pages_ = 0;
  int32_t oldest_ = -1, newest_ = -1;
  uint64_t clock_ = 0;
};

}  // namespace wok
