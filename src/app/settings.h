// Fills options that no flag set from the environment, then from the TOML file.
#pragma once

#include "app/context.h"

namespace wok::app {

// chosen: the command that will run. Errors: kInvalid with the variable, or the file, line and key;
// unknown keys of the file are named, whichever command they are for.
Status apply_settings(const Context& context, const CLI::App* root, const CLI::App* chosen);

// Bytes of "512M", "1.5G", "65536": K, M, G, T are powers of 1024, an optional "B" or "iB" may
// follow. Errors: kInvalid with the accepted forms.
Result<uint64_t> parse_size(const std::string& text);

// An option that takes such a size.
CLI::Option* add_size_option(CLI::App* command, const std::string& name, uint64_t& value,
                             const std::string& description);

}  // namespace wok::app
