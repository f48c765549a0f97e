// Writing a pack file: complete under its name, or not there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace wok {

// Writes `bytes` to dir/name: into a file of another name in that folder, which is locked while it
// grows, then synced and renamed. What starts that were killed while writing left in the folder is
// removed. Creates the folder. Errors: kIo names the file, the cause and the way out; nothing is
// left behind. The process ignores SIGXFSZ, or a limit on file sizes kills it.
Status write_pack(const std::string& dir, const std::string& name, std::span<const uint8_t> bytes);

}  // namespace wok
