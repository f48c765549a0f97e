// The list of commands. A new one is a file here and a name in this list.
#pragma once

#include "app/context.h"

// clang-format off
#define WOK_COMMANDS(X) \
  X(serve)              \
  X(run)                \
  X(pull)               \
  X(compile)            \
  X(list)               \
  X(show)               \
  X(rm)                 \
  X(bench)              \
  X(eval)               \
  X(quantize)           \
  X(version)            \
  X(completion)
// clang-format on

namespace wok::app {

// Adds the command `name` with its options, help and examples; its callback sets context.action.
#define WOK_DECLARE_COMMAND(name) void add_##name##_command(CLI::App& root, Context& context);
WOK_COMMANDS(WOK_DECLARE_COMMAND)
#undef WOK_DECLARE_COMMAND

}  // namespace wok::app
