// Names of models in the store: "smollm2", "gemma3:270m", "hf:org/name:Q4_K_M". They become file
// names, so the alphabet is checked before a name touches a path: a traversal cannot be written
// down.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace wok::store {

// [a-z0-9][a-z0-9._-]*, optionally ':' and a tag of the same form that may have capitals; at most
// 128 characters.
bool valid_plain_name(std::string_view name);

// A plain name, or a hub's as HubRef::name() writes it.
bool valid_name(std::string_view name);

// The name the store has for what a user typed: a known model's for its aliases, a hub's in its one
// form, else the name itself. Errors: kInvalid with the alphabet.
Result<std::string> canonical_name(std::string_view name);

// True for what is meant as a file: it contains '/' or ends in ".gguf", and names no hub.
bool looks_like_path(std::string_view name_or_path);

// A valid name as one component of a path ('/' is "%2F" there), and back.
std::string file_name_of(std::string_view name);
std::string name_of_file(std::string_view file_name);

// One that can stand in a folder and be shown: no '/', not "." or "..", no control characters.
bool valid_file_name(std::string_view name);

// 64 lower-case hex digits.
bool valid_sha256_hex(std::string_view hex);

}  // namespace wok::store
