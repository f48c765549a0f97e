// Ways to guess tokens ahead of the model. None changes what a request's tokens are.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace wok {

#define WOK_SPECULATIONS(X) \
  X(off)                    \
  X(lookup)

enum class Speculation : uint8_t {
#define WOK_SPECULATION(name) name,
  WOK_SPECULATIONS(WOK_SPECULATION)
#undef WOK_SPECULATION
};

const char* speculation_name(Speculation speculation);

// Errors: kInvalid with the names there are.
Result<Speculation> parse_speculation(const std::string& name);

}  // namespace wok
