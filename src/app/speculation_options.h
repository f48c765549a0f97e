// The options of speculation, the same for every command that starts an engine.
#pragma once

#include <string>

#include "app/context.h"
#include "engine/speculation.h"

namespace wok::app {

void add_speculation_options(CLI::App* command, Context& context, Speculation& speculation,
                             int32_t& draft_tokens, std::string& draft_model);

// Puts the draft model's path in place of what the user typed (find_model). False: an error was
// said.
bool find_draft_model(const Context& context, std::string& draft_model);

}  // namespace wok::app
