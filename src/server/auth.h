// API keys: "Authorization: Bearer <key>".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace wok {

// Time depends on the lengths only, not on where the texts differ.
bool equal_constant_time(std::string_view a, std::string_view b);

// True when `authorization` (the header's value) carries one of `keys`. Looks at every key.
bool is_authorized(std::string_view authorization, const std::vector<std::string>& keys);

// One key a line; blank lines and lines that begin with '#' are skipped. Errors: kIo; kInvalid for
// a file without a key, or for a key with spaces in it.
Result<std::vector<std::string>> read_key_file(const std::string& path);

}  // namespace wok
