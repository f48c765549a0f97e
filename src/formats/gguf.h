// GGUF v2/v3 files, read over a read-only mapping (the specification is ggml's docs/gguf.md).
// Nothing a file says is trusted: every count is compared with the bytes that are there before
// anything is allocated for it, and every tensor lies inside the file, aligned, without overlap.
//
// A model split over several files is opened through its first one.
#pragma once

#include <span>
#include <string>

#include "formats/model_file.h"

namespace wok {

// Errors: kNotFound, kIo; kInvalid names the file, the field and what was found; kUnsupported for
// big-endian files and other versions.
Result<ModelFile> open_gguf(const std::string& path);
// From memory that outlives the object (tests, fuzzing). `name` stands in messages.
Result<ModelFile> parse_gguf(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace wok
