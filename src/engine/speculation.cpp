#include "engine/speculation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace wok {
namespace {

constexpr const char* kNames[] = {
#define WOK_SPECULATION(name) #name,
    WOK_SPECULATIONS(WOK_SPECULATION)
#undef WOK_SPECULATION
};

}  // namespace

const char* speculation_name(Speculation speculation) {
  return kNames[static_cast<size_t>(speculation)];
}

Result<Speculation> parse_speculation(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Speculation>(i);
  }
  return invalid(
      fmt::format("'{}' is no way to speculate; there are: {}", name, fmt::join(kNames, ", ")));
}

}  // namespace wok
