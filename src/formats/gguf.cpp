#include "formats/gguf.h"

#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "base/half.h"
#include "formats/gguf_parser.h"

namespace wok {
namespace {

constexpr int64_t kMaxParts = 9999;

// "<prefix>-00001-of-00003.gguf" to the name of part `number` (from 1).
std::optional<std::string> part_name(const std::string& path, int64_t number, int64_t count) {
  static const std::regex pattern("^(.*)-([0-9]{5})-of-([0-9]{5})\\.gguf$");
  std::smatch match;
  if (!std::regex_match(path, match, pattern)) return std::nullopt;
  return fmt::format("{}-{:05}-of-{:05}.gguf", match[1].str(), number, count);
}

double float_element(const GgufArray& array, uint64_t i) {
  if (array.element_type == 6) return load_unaligned<float>(array.bytes.data() + 4 * i);
  return load_unaligned<double>(array.bytes.data() + 8 * i);
}

std::optional<int64_t> int_element(const GgufArray& array, uint64_t i) {
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

Result<GgufFile> GgufFile::parse(std::span<const uint8_t> bytes, const std::string& name) {
  GgufFile file;
  file.path_ = name;
  file.file_bytes_ = bytes.size();
  WOK_RETURN_IF_ERROR(GgufParser(bytes, name).parse(file, true));
  return file;
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  WOK_TRY(mapping, MappedFile::open(path));
  auto first = std::make_shared<MappedFile>(std::move(mapping));
  WOK_TRY(file, parse(first->bytes(), path));
  file.mappings_.push_back(std::move(first));
  WOK_TRY(count, file.get_int("split.count"));
  if (!count || *count <= 1) return file;

  WOK_TRY(number, file.get_int("split.no"));
  if (number.value_or(0) != 0) {
    return invalid(fmt::format("'{}' is part {} of {}; open part 1 of the model", path,
                               number.value_or(0) + 1, *count));
  }
  if (*count > kMaxParts || !part_name(path, 1, *count)) {
    return invalid(
        fmt::format("'{}' is one of {} parts but is not named "
                    "<name>-00001-of-{:05}.gguf; restore the parts' names",
                    path, *count, *count));
  }
  WOK_TRY(total, file.get_int("split.tensors.count"));
  for (int64_t part = 2; part <= *count; ++part) {
    const std::string name = *part_name(path, part, *count);
    auto opened = MappedFile::open(name);
    if (!opened.ok()) {
      return Error{opened.error().kind, fmt::format("part {} of {} of the model is missing: {}",
                                                    part, *count, opened.error().message)};
    }
    auto next = std::make_shared<MappedFile>(std::move(opened).value());
    file.file_bytes_ += next->bytes().size();
    file.values_.erase("split.no");
    WOK_RETURN_IF_ERROR(GgufParser(next->bytes(), name).parse(file, false));
    WOK_TRY(found, file.get_int("split.no"));
    if (found.value_or(-1) != part - 1) {
      return invalid(fmt::format("'{}' says it is part {}, expected part {}", name,
                                 found.value_or(-1) + 1, part));
    }
    WOK_TRY(parts, file.get_int("split.count"));  // as this part has it
    if (parts.value_or(*count) != *count) {
      return invalid(fmt::format("'{}' is one of {} parts, the first says {}", name,
                                 parts.value_or(0), *count));
    }
    file.mappings_.push_back(std::move(next));
  }
  if (total && *total != static_cast<int64_t>(file.tensors_.size())) {
    return invalid(fmt::format("'{}': the parts hold {} tensors, the first says {}", path,
                               file.tensors_.size(), *total));
  }
  return file;
}

void GgufFile::release_pages(std::span<const uint8_t> part) const {
  for (const auto& mapping : mappings_) mapping->release_pages(part);
}

void GgufFile::release_pages() const {
  for (const auto& mapping : mappings_) mapping->release_pages(mapping->bytes());
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Error GgufFile::wrong_type(std::string_view key, const char* expected) const {
  return invalid(fmt::format("'{}': key '{}' is not {}", path_, key, expected));
}

Result<std::optional<int64_t>> GgufFile::get_int(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  if (const auto* u = std::get_if<uint64_t>(value)) {
    if (*u > static_cast<uint64_t>(INT64_MAX)) return wrong_type(key, "a number below 2^63");
    return std::optional<int64_t>(static_cast<int64_t>(*u));
  }
  if (const auto* i = std::get_if<int64_t>(value)) return std::optional<int64_t>(*i);
  return wrong_type(key, "a whole number");
}

Result<std::optional<double>> GgufFile::get_float(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* d = std::get_if<double>(value)) {
    if (!std::isfinite(*d)) return wrong_type(key, "a finite number");
    return std::optional<double>(*d);
  }
  return wrong_type(key, "a floating-point number");
}

Result<std::optional<bool>> GgufFile::get_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional<bool>(*b);
  return wrong_type(key, "a boolean");
}

Result<std::optional<std::string_view>> GgufFile::get_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  if (const auto* s = std::get_if<std::string_view>(value)) {
    return std::optional<std::string_view>(*s);
  }
  return wrong_type(key, "a string");
}

Result<std::vector<std::string>> GgufFile::get_strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::vector<std::string>();
  const auto* array = std::get_if<GgufArray>(value);
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

Result<std::vector<float>> GgufFile::get_floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::vector<float>();
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || (array->element_type != 6 && array->element_type != 12)) {
    return wrong_type(key, "an array of floating-point numbers");
  }
  std::vector<float> out(array->count);
  for (uint64_t i = 0; i < array->count; ++i) out[i] = static_cast<float>(float_element(*array, i));
  return out;
}

Result<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::vector<int64_t>();
  const auto* array = std::get_if<GgufArray>(value);
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
