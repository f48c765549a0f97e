#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/half.h"

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the format's own library
constexpr size_t kMaxDims = 8;

struct TypeInfo {
  const char* name;
  HfType type;
  uint64_t bytes;
};
constexpr TypeInfo kTypes[] = {
    {"F32", HfType::kF32, 4},        {"F16", HfType::kF16, 2},        {"BF16", HfType::kBF16, 2},
    {"F8_E4M3", HfType::kF8E4M3, 1}, {"F8_E5M2", HfType::kF8E5M2, 1}, {"I64", HfType::kI64, 8},
    {"I32", HfType::kI32, 4},        {"I8", HfType::kI8, 1},          {"U8", HfType::kU8, 1},
    {"F64", HfType::kOther, 8},      {"U64", HfType::kOther, 8},      {"U32", HfType::kOther, 4},
    {"I16", HfType::kOther, 2},      {"U16", HfType::kOther, 2},      {"BOOL", HfType::kOther, 1},
    {"F8_E8M0", HfType::kU8, 1},
};

class Parser {
 public:
  Parser(std::span<const uint8_t> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Status parse(HfTensors& tensors) {
    uint64_t length = 0;
    if (bytes_.size() < sizeof(length)) return broken("it ends inside the header's length");
    length = load_unaligned<uint64_t>(bytes_.data());
    if (length > kMaxHeaderBytes || length > bytes_.size() - sizeof(length)) {
      return broken(fmt::format("a header of {} bytes in a file of {}", length, bytes_.size()));
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + sizeof(length));
    const Json header = Json::parse(text, text + length, nullptr, false);
    if (!header.is_object()) return broken("the header is no JSON object");
    data_ = bytes_.subspan(sizeof(length) + length);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      HfTensor tensor;
      std::pair<uint64_t, uint64_t> range;
      WOK_RETURN_IF_ERROR(read_entry(name, entry, tensor, range));
      ranges.push_back(range);
      if (!tensors.emplace(name, std::move(tensor)).second) {
        return broken(fmt::format("tensor '{}' is in two files", name));
      }
    }
    std::sort(ranges.begin(), ranges.end());
    uint64_t at = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin != at) return broken(fmt::format("tensors overlap or leave a hole at {}", at));
      at = end;
    }
    if (at != data_.size()) {
      return broken(fmt::format("tensors end at byte {} of {}", at, data_.size()));
    }
    return Ok{};
  }

 private:
  Error broken(const std::string& what) const {
    return invalid(
        fmt::format("'{}' is not a valid safetensors file: {}; pull or copy the file "
                    "again",
                    name_, what));
  }

  Status read_entry(const std::string& name, const Json& entry, HfTensor& tensor,
                    std::pair<uint64_t, uint64_t>& range) const {
    const auto wrong = [&](const char* what) {
      return broken(fmt::format("tensor '{}': {}", name, what));
    };
    if (!entry.is_object()) return wrong("its entry is no object");
    const Json type = entry.value("dtype", Json()), shape = entry.value("shape", Json()),
               offsets = entry.value("data_offsets", Json());
    if (!type.is_string()) return wrong("no dtype");
    tensor.type_name = type.get<std::string>();
    const auto* info = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeInfo& t) { return t.name == tensor.type_name; });
    if (info == std::end(kTypes)) return wrong("unknown dtype");
    tensor.type = info->type;
    if (!shape.is_array() || shape.size() > kMaxDims) return wrong("no shape");
    uint64_t bytes = info->bytes;
    for (const Json& dim : shape) {
      if (!dim.is_number_unsigned()) return wrong("a dimension that is no whole number");
      const auto n = dim.get<uint64_t>();
      if (__builtin_mul_overflow(bytes, n, &bytes) || bytes > data_.size()) {
        return wrong("more elements than the file has bytes");
      }
      tensor.shape.push_back(static_cast<int64_t>(n));
    }
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      return wrong("no data_offsets");
    }
    range = {offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>()};
    if (range.second > data_.size() || range.first > range.second ||
        range.second - range.first != bytes) {
      return wrong("its bytes are not those of its shape, or lie outside the file");
    }
    tensor.data = data_.subspan(range.first, bytes);
    return Ok{};
  }

  std::span<const uint8_t> bytes_, data_;
  const std::string& name_;
};

}  // namespace

int64_t HfTensor::elements() const {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

bool HfTensor::is_float() const {
  return type == HfType::kF32 || type == HfType::kF16 || type == HfType::kBF16;
}

float HfTensor::float_at(int64_t i) const {
  switch (type) {
    case HfType::kF32:
      return load_unaligned<float>(data.data() + 4 * i);
    case HfType::kF16:
      return half_to_float(load_unaligned<uint16_t>(data.data() + 2 * i));
    case HfType::kBF16:
      return bf16_to_float(load_unaligned<uint16_t>(data.data() + 2 * i));
    default:
      WOK_CHECK(false, "callers ask is_float() first");
      return 0;
  }
}

Status parse_safetensors(std::span<const uint8_t> bytes, const std::string& name,
                         HfTensors& tensors) {
  return Parser(bytes, name).parse(tensors);
}

}  // namespace wok
