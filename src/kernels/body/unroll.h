// Loops whose turns are written out at compile time. GCC keeps an array of accumulators in memory,
// stores and all, unless every index is a constant before its first passes.
#pragma once

#include <utility>

namespace wok {
namespace {

#define WOK_INLINE __attribute__((always_inline))

// Calls fn(i) for i in [0, kCount), each i a constant. Write fn as [&](auto i) WOK_INLINE { … }.
template <int kCount, class Fn>
WOK_INLINE inline void unrolled(const Fn& fn) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) WOK_INLINE {
    (fn(std::integral_constant<int, kIndex>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

}  // namespace
}  // namespace wok
