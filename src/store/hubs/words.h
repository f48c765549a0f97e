// What the hubs' files share: alphabets, addresses, JSON that is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "store/hubs/hub.h"

namespace wok::store {

// One or more components behind slashes, each of letters, digits and "._-+=" and beginning with a
// letter or digit.
bool valid_ref_path(std::string_view text);

// "org/name[@revision][:variant]" for hubs of repositories; `prefix` and `text` stand in the error.
Result<HubRef> parse_repo_ref(std::string_view prefix, std::string_view text);

// The variable's value or `fallback`, without slashes at its end; a host alone gets https://.
Result<std::string> endpoint_of(std::string_view variable, std::string value,
                                std::string_view fallback);

// "Authorization: Bearer …"; "" for no token. Errors: kInvalid when it cannot stand in a header.
Result<std::string> bearer(std::string_view variable, const std::string& token);

// Errors: kInvalid names the address.
Result<nlohmann::json> parse_answer(const std::string& text, const std::string& url);

// A member of that kind, else "" or 0.
std::string text_of(const nlohmann::json& object, const char* key);
uint64_t number_of(const nlohmann::json& object, const char* key);

// A hub's list is somebody else's text: every component is a name, none leaves a folder, and no
// character could write on the terminal.
bool safe_repo_path(std::string_view path);

constexpr uint64_t kMaxAnswerBytes = 64 << 20;

}  // namespace wok::store
