#include "store/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace wok::store {

namespace {

evp_md_ctx_st* begin(const EVP_MD* kind) {
  evp_md_ctx_st* context = EVP_MD_CTX_new();
  WOK_CHECK(context != nullptr && EVP_DigestInit_ex(context, kind, nullptr) == 1,
            "libcrypto provides the checksum");
  return context;
}

std::string finish(evp_md_ctx_st* context) {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  WOK_CHECK(EVP_DigestFinal_ex(context, digest.data(), &size) == 1, "the checksum can be ended");
  std::string hex;
  for (unsigned i = 0; i < size; ++i) fmt::format_to(std::back_inserter(hex), "{:02x}", digest[i]);
  return hex;
}

Status read_through(const std::string& path,
                    const std::function<Status(std::span<const uint8_t>)>& on_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(fmt::format("cannot read {}", path));
  std::vector<char> buffer(1 << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    WOK_RETURN_IF_ERROR(on_bytes(
        {reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(file.gcount())}));
  }
  if (file.bad()) return io_error(fmt::format("cannot read {} to its end", path));
  return Ok{};
}

}  // namespace

Sha256::Sha256() : context_(begin(EVP_sha256())) {}

Sha256::~Sha256() {
  EVP_MD_CTX_free(context_);
}

void Sha256::update(std::span<const uint8_t> bytes) {
  WOK_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "SHA-256 update");
}

std::string Sha256::finish_hex() {
  return finish(context_);
}

Result<std::string> sha256_of_file(const std::string& path,
                                   const std::function<bool(uint64_t)>& going_on) {
  Sha256 hash;
  uint64_t done = 0;
  WOK_RETURN_IF_ERROR(read_through(path, [&](std::span<const uint8_t> bytes) -> Status {
    hash.update(bytes);
    done += bytes.size();
    if (going_on && !going_on(done)) return Error{ErrorKind::kCancelled, "cancelled"};
    return Ok{};
  }));
  return hash.finish_hex();
}

Result<std::string> git_sha1_of_file(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return io_error(fmt::format("cannot read {}: {}", path, error.message()));
  const std::unique_ptr<evp_md_ctx_st, decltype(&EVP_MD_CTX_free)> context(begin(EVP_sha1()),
                                                                           &EVP_MD_CTX_free);
  const std::string head = fmt::format("blob {}", size);
  EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1);  // with its zero
  WOK_RETURN_IF_ERROR(read_through(path, [&](std::span<const uint8_t> bytes) -> Status {
    EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
    return Ok{};
  }));
  return finish(context.get());
}

}  // namespace wok::store
