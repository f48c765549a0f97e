// WOK_CHECK(condition, "what must hold"): our own invariants. A failure is a bug in wok: it prints
// where and ends the process. Never used for what a file, a socket or a user can cause.
#pragma once

namespace wok {

[[noreturn]] void check_failed(const char* condition, const char* what, const char* file, int line);

#define WOK_CHECK(condition, what)                               \
  do {                                                           \
    if (!(condition)) [[unlikely]] {                             \
      ::wok::check_failed(#condition, what, __FILE__, __LINE__); \
    }                                                            \
  } while (0)

}  // namespace wok
