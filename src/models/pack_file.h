// Packed weights on disk: written once, mapped read-only and shared by every later start. A pack
// file is complete or not there: it is written under another name, synced and renamed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace wok {

// Memory that holds packed weights: a file's mapping, or anonymous memory where no file can be
// kept.
class PackMemory {
 public:
  // `fill(bytes)` packs into zeroed memory. dir "": anonymous. A pack with this key that is already
  // there is mapped and fill is not called. Errors: kNoMemory. A folder that cannot be written
  // costs a warning, not the start.
  static Result<PackMemory> open(const std::string& dir, const std::string& key, size_t bytes,
                                 const std::function<void(uint8_t*)>& fill);
  PackMemory() = default;
  PackMemory(PackMemory&& other) noexcept;
  PackMemory& operator=(PackMemory&& other) noexcept;
  ~PackMemory();

  const uint8_t* data() const { return data_ == nullptr ? nullptr : data_ + offset_; }
  bool from_file() const { return from_file_; }

 private:
  uint8_t* data_ = nullptr;
  size_t mapped_ = 0, offset_ = 0;
  bool from_file_ = false;
};

}  // namespace wok
