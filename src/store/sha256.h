// SHA-256 of a stream of bytes (libcrypto's EVP, which picks the CPU's SHA instructions).
#pragma once

#include <cstdint>
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

Result<std::string> sha256_of_file(const std::string& path);

}  // namespace wok::store
