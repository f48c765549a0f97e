// Packed weights on disk: written once, mapped read-only and shared by every later start.
//
// A file is used when its header fits and its sums hold: a small sample at every opening, all of it
// when it has to come from the disk anyway, or when asked. Why so: docs/adr/0009.
// A file that another program truncates while it is mapped raises SIGBUS, as for every mmap user;
// wok itself only renames complete files into place, and removes by unlinking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "models/pack_header.h"

namespace wok {

enum class PackMode {
  kUse,      // the pack that is there; else pack, and keep it
  kRebuild,  // pack and keep, whatever is there
  kVerify,   // read the pack that is there through and check its sums; never pack
};

// Memory that holds packed weights: a file's mapping, or anonymous memory.
class PackMemory {
 public:
  // `fill(bytes)` packs into zeroed memory. dir "": nothing is kept. Errors: kNoMemory; with
  // kVerify also kNotFound, and kInvalid with what is wrong with the file. A file that cannot be
  // used is packed again with a warning; a folder that cannot be written costs a warning, not the
  // start (not_kept()). Threads and processes may open one pack at once.
  static Result<PackMemory> open(const std::string& dir, const PackId& id, PackMode mode,
                                 ComputePool& pool, const std::function<void(uint8_t*)>& fill);
  PackMemory() = default;
  PackMemory(PackMemory&& other) noexcept;
  PackMemory& operator=(PackMemory&& other) noexcept;
  ~PackMemory();

  const uint8_t* data() const { return data_ == nullptr ? nullptr : data_ + kPackHeaderBytes; }
  size_t bytes() const { return data_ == nullptr ? 0 : mapped_ - kPackHeaderBytes; }
  const std::string& path() const { return path_; }          // the file; "" when none is kept
  bool from_file() const { return from_file_; }              // it was there before
  const std::string& not_kept() const { return not_kept_; }  // why no file could be written
  double packing_s() const { return packing_s_; }            // in `fill`, without the file

 private:
  // Maps the file and checks it. kNotFound: there is none; other errors: why it is not used.
  static Result<PackMemory> map(const std::string& path, const PackId& id, bool verify,
                                ComputePool& pool);

  uint8_t* data_ = nullptr;
  size_t mapped_ = 0;
  bool from_file_ = false;
  double packing_s_ = 0;
  std::string path_, not_kept_;
};

}  // namespace wok
