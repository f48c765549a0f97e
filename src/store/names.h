// Names of models in the store: "smollm2", "gemma3:270m". They become file names, so the alphabet
// is checked before a name touches a path: a traversal cannot be written down.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace wok::store {

// [a-z0-9][a-z0-9._-]*, optionally ':' and a tag of the same form; at most 128 characters.
bool valid_name(std::string_view name);

// Errors: kInvalid with the alphabet.
Status check_name(std::string_view name);

// True for what is meant as a file: it contains '/' or ends in ".gguf".
bool looks_like_path(std::string_view name_or_path);

// 64 lower-case hex digits.
bool valid_sha256_hex(std::string_view hex);

}  // namespace wok::store
