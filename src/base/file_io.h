// System calls that take a few lines each time: error numbers come back, 0 when all went well, for
// the caller's own words.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace wok {

// Writes all of it, however often the system stops in between.
int write_fully(int fd, std::span<const uint8_t> bytes);

// What was created or renamed in a folder is on disk only when the folder is.
int sync_folder(const std::string& folder);

}  // namespace wok
