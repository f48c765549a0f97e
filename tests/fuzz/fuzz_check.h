// What fuzz targets demand; a demand that does not hold ends the process, which the fuzzer records.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace wok::fuzz {

inline void demand(bool holds, std::string_view what, std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

// An error says something, and not what a caught panic of the Rust library says (unless the input
// brought the words along: the fuzzer learns them from this comparison).
inline void check_message(std::string_view message, std::string_view input) {
  constexpr std::string_view kPanic = "internal error";
  demand(!message.empty(), "an error without a message");
  demand(message.find(kPanic) == message.npos || input.find(kPanic) != input.npos, "a panic",
         message);
}

}  // namespace wok::fuzz
