// The options of speculation, the same for every command that starts an engine.
#pragma once

#include "app/context.h"
#include "engine/speculation.h"

namespace wok::app {

void add_speculation_options(CLI::App* command, Context& context, Speculation& speculation,
                             int32_t& draft_tokens);

}  // namespace wok::app
