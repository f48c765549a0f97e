// A vector that takes its memory from the system page by page, as it is first written: buffers are
// sized for the largest batch, and most batches are small.
#pragma once

#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace wok {

template <class T>
struct ZeroPages {
  static_assert(std::is_trivially_default_constructible_v<T>, "zero bytes are a value");
  using value_type = T;
  ZeroPages() = default;
  template <class U>
  explicit ZeroPages(const ZeroPages<U>&) {}

  T* allocate(size_t n) {
    // Large blocks of calloc come from the system, which promises zeroes without writing them.
    void* memory =
        n > std::numeric_limits<size_t>::max() / sizeof(T) ? nullptr : std::calloc(n, sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  template <class U>
  void construct(U*) {}  // is zero already
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const ZeroPages&, const ZeroPages&) { return true; }
};

// Sized once: growing within a capacity that was used before would not zero.
template <class T>
using LazyVector = std::vector<T, ZeroPages<T>>;

}  // namespace wok
