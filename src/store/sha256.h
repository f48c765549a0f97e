// Checksums of bytes and files (libcrypto's EVP, which picks the CPU's SHA instructions).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"

struct evp_md_ctx_st;

namespace wok::store {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const uint8_t> bytes);
  // Lower-case hex; the object is spent afterwards.
  std::string finish_hex();

 private:
  evp_md_ctx_st* context_;
};

// `going_on` is asked every few megabytes; false ends it with kCancelled.
Result<std::string> sha256_of_file(const std::string& path,
                                   const std::function<bool(uint64_t done_bytes)>& going_on = {});

// What git calls a file's content: SHA-1 of "blob <bytes>\0" and the bytes. Hubs give it for files
// outside their large-file storage.
Result<std::string> git_sha1_of_file(const std::string& path);

}  // namespace wok::store
