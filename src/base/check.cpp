#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace wok {

void check_failed(const char* condition, const char* what, const char* file, int line) {
  std::fprintf(stderr, "wok: internal error at %s:%d: %s (%s)\nPlease report this.\n", file, line,
               what, condition);
  std::abort();
}

}  // namespace wok
