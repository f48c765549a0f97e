// A read-only mapping of a whole file. The bytes live as long as the object; it can be moved.
// If another process truncates the file afterwards a read raises SIGBUS, as for every mmap user:
// models in the store are never truncated in place (they are renamed over).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace wok {

class MappedFile {
 public:
  // Errors: kNotFound, kIo; kInvalid for something that is not a regular file or is empty.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Gives the whole pages of a part of the mapping back to the system; they can be read again.
  // Bytes of other memory are left alone.
  void release_pages(std::span<const uint8_t> part) const;
  const std::string& path() const { return path_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

}  // namespace wok
