// Writes a safetensors file, whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace wok {

struct SafetensorsEntry {
  std::string name;
  std::string type;            // "F16", "I32", ..
  std::vector<int64_t> shape;  // slowest first
  std::vector<uint8_t> data;
};

// The file has its name only when it is whole and on disk. Errors: kIo says what to do.
Status write_safetensors(const std::string& path, const std::vector<SafetensorsEntry>& entries);

// The same for a small file of text.
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace wok
