// GGUF v2/v3 files, read over a read-only mapping (the specification is ggml's docs/gguf.md).
// Nothing a file says is trusted: every count is compared with the bytes that are there before
// anything is allocated for it, and every tensor lies inside the file, aligned, without overlap.
//
// A model split over several files is opened through its first one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "quant/weight_format.h"

namespace wok {

// Arrays keep their place in the mapping: a vocabulary's strings are listed when somebody asks.
struct GgufArray {
  uint32_t element_type = 0;  // GGUF value type
  uint64_t count = 0;
  std::span<const uint8_t> bytes;  // the elements, unaligned; strings with their lengths, checked
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

// A key as it stands in the file, for whoever writes it again.
struct GgufKey {
  std::string_view name;
  uint32_t type = 0;               // GGUF value type
  std::span<const uint8_t> bytes;  // of the value
};

struct GgufTensor {
  std::string_view name;
  uint32_t type = 0;                     // ggml type id
  const WeightFormat* format = nullptr;  // null: a type wok does not read
  int32_t dims = 0;
  int64_t shape[4] = {1, 1, 1, 1};  // fastest first: shape[0] is the row length
  std::span<const uint8_t> data;    // empty when format is null
  int64_t rows() const { return shape[1] * shape[2] * shape[3]; }
};

class GgufFile {
 public:
  // Errors: kNotFound, kIo; kInvalid names the file, the field and what was found; kUnsupported for
  // big-endian files and other versions.
  static Result<GgufFile> open(const std::string& path);
  // From memory that outlives the object (tests, fuzzing). `name` stands in messages.
  static Result<GgufFile> parse(std::span<const uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return file_bytes_; }  // of all parts
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;
  // As MappedFile's: what was packed is not read again. Part of a tensor's data, or of all parts.
  void release_pages(std::span<const uint8_t> part) const;
  void release_pages() const;

  // Keys of a model's first file, in its order.
  const std::vector<GgufKey>& keys() const { return keys_; }
  const GgufValue* find(std::string_view key) const;
  // A missing key gives an empty optional; one of another type is an error that names it.
  Result<std::optional<int64_t>> get_int(std::string_view key) const;
  Result<std::optional<double>> get_float(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> get_string(std::string_view key) const;
  Result<std::vector<std::string>> get_strings(std::string_view key) const;  // empty when missing
  Result<std::vector<float>> get_floats(std::string_view key) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;  // a scalar counts as one

 private:
  friend class GgufParser;
  Error wrong_type(std::string_view key, const char* expected) const;

  std::string path_;
  uint64_t file_bytes_ = 0;
  std::vector<std::shared_ptr<MappedFile>> mappings_;
  std::unordered_map<std::string_view, GgufValue> values_;
  std::vector<GgufKey> keys_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace wok
