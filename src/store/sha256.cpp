#include "store/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace wok::store {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  WOK_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1,
            "libcrypto provides SHA-256");
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(context_);
}

void Sha256::update(std::span<const uint8_t> bytes) {
  WOK_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "SHA-256 update");
}

std::string Sha256::finish_hex() {
  std::array<uint8_t, 32> digest{};
  unsigned size = 0;
  WOK_CHECK(EVP_DigestFinal_ex(context_, digest.data(), &size) == 1 && size == digest.size(),
            "SHA-256 final");
  std::string hex;
  for (const uint8_t byte : digest) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  return hex;
}

Result<std::string> sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(fmt::format("cannot read {}", path));
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update(
        {reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) return io_error(fmt::format("cannot read {} to its end", path));
  return hash.finish_hex();
}

}  // namespace wok::store
