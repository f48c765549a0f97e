#include "formats/model_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/half.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"

namespace wok {
namespace {

double float_element(const ModelArray& array, uint64_t i) {
  if (array.element_type == 6) return load_unaligned<float>(array.bytes.data() + 4 * i);
  return load_unaligned<double>(array.bytes.data() + 8 * i);
}

std::optional<int64_t> int_element(const ModelArray& array, uint64_t i) {
  const uint8_t* p = array.bytes.data();
  switch (array.element_type) {
    case 0:
      return p[i];
    case 1:
      return static_cast<int8_t>(p[i]);
    case 2:
      return load_unaligned<uint16_t>(p + 2 * i);
    case 3:
      return load_unaligned<int16_t>(p + 2 * i);
    case 4:
      return load_unaligned<uint32_t>(p + 4 * i);
    case 5:
      return load_unaligned<int32_t>(p + 4 * i);
    case 7:
      return p[i] != 0;
    case 10: {
      const auto value = load_unaligned<uint64_t>(p + 8 * i);
      if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    case 11:
      return load_unaligned<int64_t>(p + 8 * i);
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<ModelFile> ModelFile::open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return open_hf_folder(path);
  return open_gguf(path);
}

const uint8_t* ModelTensor::read_rows(int64_t begin, int64_t count,
                                      std::vector<uint8_t>& buffer) const {
  const auto bytes = static_cast<size_t>(format->row_bytes(shape[0]));
  if (source == nullptr) return data.data() + static_cast<size_t>(begin) * bytes;
  buffer.resize(static_cast<size_t>(count) * bytes);
  source->read_rows(begin, count, buffer.data());
  return buffer.data();
}

void ModelFile::release_pages(std::span<const uint8_t> part) const {
  for (const auto& mapping : mappings_) mapping->release_pages(part);
}

void ModelFile::release_pages() const {
  for (const auto& mapping : mappings_) mapping->release_pages(mapping->bytes());
}

const ModelTensor* ModelFile::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const ModelValue* ModelFile::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Error ModelFile::wrong_type(std::string_view key, const char* expected) const {
  return invalid(fmt::format("'{}': key '{}' is not {}", path_, key, expected));
}

Result<std::optional<int64_t>> ModelFile::get_int(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  if (const auto* u = std::get_if<uint64_t>(value)) {
    if (*u > static_cast<uint64_t>(INT64_MAX)) return wrong_type(key, "a number below 2^63");
    return std::optional<int64_t>(static_cast<int64_t>(*u));
  }
  if (const auto* i = std::get_if<int64_t>(value)) return std::optional<int64_t>(*i);
  return wrong_type(key, "a whole number");
}

Result<std::optional<double>> ModelFile::get_float(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* d = std::get_if<double>(value)) {
    if (!std::isfinite(*d)) return wrong_type(key, "a finite number");
    return std::optional<double>(*d);
  }
  return wrong_type(key, "a floating-point number");
}

Result<std::optional<bool>> ModelFile::get_bool(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional<bool>(*b);
  return wrong_type(key, "a boolean");
}

Result<std::optional<std::string_view>> ModelFile::get_string(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  if (const auto* s = std::get_if<std::string_view>(value)) {
    return std::optional<std::string_view>(*s);
  }
  return wrong_type(key, "a string");
}

Result<std::vector<std::string>> ModelFile::get_strings(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::vector<std::string>();
  const auto* array = std::get_if<ModelArray>(value);
  if (array == nullptr || array->element_type != 8) return wrong_type(key, "an array of strings");
  std::vector<std::string> out;
  out.reserve(array->count);
  const uint8_t* at = array->bytes.data();  // lengths were checked when the file was parsed
  for (uint64_t i = 0; i < array->count; ++i) {
    const auto length = load_unaligned<uint64_t>(at);
    out.emplace_back(reinterpret_cast<const char*>(at + sizeof(length)), length);
    at += sizeof(length) + length;
  }
  return out;
}

Result<std::vector<float>> ModelFile::get_floats(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::vector<float>();
  const auto* array = std::get_if<ModelArray>(value);
  if (array == nullptr || (array->element_type != 6 && array->element_type != 12)) {
    return wrong_type(key, "an array of floating-point numbers");
  }
  std::vector<float> out(array->count);
  for (uint64_t i = 0; i < array->count; ++i) out[i] = static_cast<float>(float_element(*array, i));
  return out;
}

Result<std::vector<int64_t>> ModelFile::get_ints(std::string_view key) const {
  const ModelValue* value = find(key);
  if (value == nullptr) return std::vector<int64_t>();
  const auto* array = std::get_if<ModelArray>(value);
  if (array == nullptr) {
    WOK_TRY(one, get_int(key));
    return std::vector<int64_t>{one.value_or(0)};
  }
  std::vector<int64_t> out;
  out.reserve(array->count);
  for (uint64_t i = 0; i < array->count; ++i) {
    const std::optional<int64_t> element = int_element(*array, i);
    if (!element) return wrong_type(key, "an array of whole numbers");
    out.push_back(*element);
  }
  return out;
}

}  // namespace wok
