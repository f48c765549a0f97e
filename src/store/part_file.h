// A file of known size that arrives in pieces, with a record of what is there (download.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace wok::store {

class PartFile {
 public:
  // Opens or makes it. A record that does not fit is forgotten together with its bytes.
  static Result<PartFile> open(const std::string& path, uint64_t bytes, uint64_t segment_bytes);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  size_t segments() const { return segments_; }
  uint64_t begin(size_t segment) const { return segment * segment_bytes_; }
  uint64_t size(size_t segment) const;  // bytes it has when it is complete
  uint64_t done(size_t segment) const { return done_[segment].load(std::memory_order_relaxed); }
  bool complete(size_t segment) const { return done(segment) == size(segment); }
  uint64_t done() const;  // of all segments

  // Bytes that follow those of the segment. Segments may be written by different threads.
  Status append(size_t segment, std::span<const uint8_t> bytes);
  Status restart(size_t segment);

 private:
  PartFile() = default;
  Status set_done(size_t segment, uint64_t bytes);
  Status load();

  std::string path_;
  int data_ = -1;
  int record_ = -1;
  uint64_t bytes_ = 0;
  uint64_t segment_bytes_ = 0;
  size_t segments_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> done_;
};

}  // namespace wok::store
