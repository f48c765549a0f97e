// A model as it lies on disk, whatever its format: keys and tensors, both named as GGUF names them.
// Readers of other formats translate (hf_folder.h), so that the rest of wok knows one vocabulary.
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
struct ModelArray {
  uint32_t element_type = 0;  // GGUF value type
  uint64_t count = 0;
  std::span<const uint8_t> bytes;  // the elements, unaligned; strings with their lengths, checked
};

using ModelValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, ModelArray>;

// A key as it stands in the file, for whoever writes it again.
struct ModelKey {
  std::string_view name;
  uint32_t type = 0;               // GGUF value type
  std::span<const uint8_t> bytes;  // of the value
};

// Makes rows in a tensor's format, where the file stores them otherwise. Threads may call at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Rows [begin, begin + count) to `out`, format.row_bytes(cols) bytes each.
  virtual void read_rows(int64_t begin, int64_t count, uint8_t* out) const = 0;
  // Column i of these rows multiplies input column_order()[i]; empty: input i.
  virtual std::span<const int32_t> column_order() const { return {}; }
};

struct ModelTensor {
  std::string_view name;
  uint32_t type = 0;                     // ggml type id; kNoGgufType
  const WeightFormat* format = nullptr;  // null: a type wok does not read
  int32_t dims = 0;
  int64_t shape[4] = {1, 1, 1, 1};    // fastest first: shape[0] is the row length
  std::span<const uint8_t> data;      // rows; empty when format is null or there is a source
  const RowSource* source = nullptr;  // of the rows
  std::span<const uint8_t> identity;  // with a source: bytes of the file that tell it from others
  uint64_t stored_bytes = 0;          // with a source: what the file has of it
  int64_t rows() const { return shape[1] * shape[2] * shape[3]; }
  uint64_t file_bytes() const { return source == nullptr ? data.size() : stored_bytes; }
  // Rows [begin, begin + count): in place, or made in `buffer`.
  const uint8_t* read_rows(int64_t begin, int64_t count, std::vector<uint8_t>& buffer) const;
};

class ModelFile {
 public:
  // Errors: kNotFound, kIo; kInvalid names the file, the field and what was found; kUnsupported for
  // big-endian files and other versions.
  static Result<ModelFile> open(const std::string& path);
  const std::string& path() const { return path_; }
  bool is_gguf() const { return is_gguf_; }
  uint64_t file_bytes() const { return file_bytes_; }  // of all parts
  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  const ModelTensor* find_tensor(std::string_view name) const;
  // As MappedFile's: what was packed is not read again. Part of a tensor's data, or of all parts.
  void release_pages(std::span<const uint8_t> part) const;
  void release_pages() const;

  // Keys of a model's first file, in its order.
  const std::vector<ModelKey>& keys() const { return keys_; }
  const ModelValue* find(std::string_view key) const;
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
  friend class HfFolder;
  friend Result<ModelFile> parse_gguf(std::span<const uint8_t> bytes, const std::string& name);
  friend Result<ModelFile> open_gguf(const std::string& path);
  Error wrong_type(std::string_view key, const char* expected) const;

  std::string path_;
  bool is_gguf_ = true;
  uint64_t file_bytes_ = 0;
  std::vector<std::shared_ptr<MappedFile>> mappings_;
  std::vector<std::shared_ptr<const void>> owned_;  // what values, tensors and sources point into
  std::unordered_map<std::string_view, ModelValue> values_;
  std::vector<ModelKey> keys_;
  std::vector<ModelTensor> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace wok
