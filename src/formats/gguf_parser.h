// One GGUF file's bytes to values and tensors; used by gguf.cpp for each part of a model.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "formats/gguf.h"

namespace wok {

class GgufParser {
 public:
  GgufParser(std::span<const uint8_t> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  // Fills `file` (appending tensors; values only when `with_values`).
  Status parse(ModelFile& file, bool with_values);

 private:
  template <class T>
  Result<T> read(const char* what);
  Result<std::string_view> read_string(const char* what, uint64_t limit);
  Result<ModelValue> read_value(uint32_t type, const std::string& key);
  Result<ModelArray> read_array(const std::string& key);
  Status read_header(uint64_t& tensor_count, uint64_t& value_count);
  Status read_tensor_info(ModelTensor& tensor, uint64_t& offset);
  Status place_tensors(ModelFile& file, size_t first, std::span<const uint64_t> offsets,
                       uint64_t alignment);
  template <class... Args>
  Error broken(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid(
        fmt::format("'{}' is not a valid GGUF file: {} (at byte {}); "
                    "pull or copy the file again",
                    name_, fmt::format(format, std::forward<Args>(args)...), at_));
  }

  std::span<const uint8_t> bytes_;
  std::string name_;
  size_t at_ = 0;
};

}  // namespace wok
