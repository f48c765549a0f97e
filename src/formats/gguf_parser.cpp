#include "formats/gguf_parser.h"

#include <bit>
#include <unordered_set>

#include "base/half.h"

namespace wok {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxLength = uint64_t{1} << 30;
constexpr uint64_t kMaxNameLength = 63;
enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

size_t element_bytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kU64:
    case kI64:
    case kF64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

template <class T>
Result<T> GgufParser::read(const char* what) {
  if (bytes_.size() - at_ < sizeof(T)) return broken("the file ends inside {}", what);
  const T value = load_unaligned<T>(bytes_.data() + at_);
  at_ += sizeof(T);
  return value;
}

Result<std::string_view> GgufParser::read_string(const char* what, uint64_t limit) {
  WOK_TRY(length, read<uint64_t>(what));
  if (length > limit) return broken("{} has length {}, the limit is {}", what, length, limit);
  if (length > bytes_.size() - at_) return broken("the file ends inside {}", what);
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
  at_ += length;
  return text;
}

Result<ModelArray> GgufParser::read_array(const std::string& key) {
  ModelArray array;
  WOK_TRY(type, read<uint32_t>("an array's type"));
  WOK_TRY(count, read<uint64_t>("an array's length"));
  array.element_type = type;
  array.count = count;
  if (count > kMaxLength) return broken("'{}' has {} elements", key, count);
  if (type == kString) {
    // A string takes at least its length field: bounds what readers reserve by the file's size.
    if (count > (bytes_.size() - at_) / 8) return broken("the file ends inside '{}'", key);
    const size_t begin = at_;
    for (uint64_t i = 0; i < count; ++i) {
      WOK_RETURN_IF_ERROR(read_string("a string of an array", kMaxLength));
    }
    array.bytes = bytes_.subspan(begin, at_ - begin);
    return array;
  }
  const size_t size = element_bytes(type);
  if (size == 0) return broken("'{}' is an array of value type {}", key, type);
  if (count > (bytes_.size() - at_) / size) return broken("the file ends inside '{}'", key);
  array.bytes = bytes_.subspan(at_, count * size);
  at_ += count * size;
  return array;
}

Result<ModelValue> GgufParser::read_value(uint32_t type, const std::string& key) {
  const char* what = "a value";
  switch (type) {
#define WOK_SCALAR(id, T, As)              \
  case id: {                               \
    WOK_TRY(v, read<T>(what));             \
    return ModelValue(static_cast<As>(v)); \
  }
    WOK_SCALAR(kU8, uint8_t, uint64_t)
    WOK_SCALAR(kI8, int8_t, int64_t)
    WOK_SCALAR(kU16, uint16_t, uint64_t)
    WOK_SCALAR(kI16, int16_t, int64_t)
    WOK_SCALAR(kU32, uint32_t, uint64_t)
    WOK_SCALAR(kI32, int32_t, int64_t)
    WOK_SCALAR(kF32, float, double)
    WOK_SCALAR(kU64, uint64_t, uint64_t)
    WOK_SCALAR(kI64, int64_t, int64_t)
    WOK_SCALAR(kF64, double, double)
#undef WOK_SCALAR
    case kBool: {
      WOK_TRY(v, read<uint8_t>(what));
      return ModelValue(v != 0);
    }
    case kString: {
      WOK_TRY(text, read_string("a string value", kMaxLength));
      return ModelValue(text);
    }
    case kArray: {
      WOK_TRY(array, read_array(key));
      return ModelValue(array);
    }
    default:
      return broken("'{}' has unknown value type {}", key, type);
  }
}

Status GgufParser::read_header(uint64_t& tensor_count, uint64_t& value_count) {
  WOK_TRY(magic, read<uint32_t>("the magic number"));
  if (magic != kMagic) return broken("it does not begin with \"GGUF\"");
  WOK_TRY(version, read<uint32_t>("the version"));
  if ((version & 0xffff) == 0) {
    return unsupported(
        fmt::format("'{}' is a big-endian GGUF file; convert it to little-endian", name_));
  }
  if (version != 2 && version != 3) {
    return unsupported(
        fmt::format("'{}' is GGUF version {}; wok reads versions 2 and 3", name_, version));
  }
  WOK_TRY(tensors, read<uint64_t>("the tensor count"));
  WOK_TRY(values, read<uint64_t>("the key count"));
  // A tensor takes at least 24 bytes of header, a key at least 13.
  if (tensors > bytes_.size() / 24) return broken("it claims {} tensors", tensors);
  if (values > bytes_.size() / 13) return broken("it claims {} keys", values);
  tensor_count = tensors;
  value_count = values;
  return Ok{};
}

Status GgufParser::read_tensor_info(ModelTensor& tensor, uint64_t& offset) {
  WOK_TRY(name, read_string("a tensor's name", kMaxNameLength));
  tensor.name = name;
  WOK_TRY(dims, read<uint32_t>("a tensor's dimensions"));
  if (dims < 1 || dims > 4) return broken("tensor '{}' has {} dimensions", name, dims);
  tensor.dims = static_cast<int32_t>(dims);
  int64_t total = 1;
  for (uint32_t d = 0; d < dims; ++d) {
    WOK_TRY(size, read<int64_t>("a tensor's dimension"));
    if (size < 1) return broken("tensor '{}' has dimension {} of size {}", name, d, size);
    if (__builtin_mul_overflow(total, size, &total)) return broken("tensor '{}' is too big", name);
    tensor.shape[d] = size;
  }
  WOK_TRY(type, read<uint32_t>("a tensor's type"));
  WOK_TRY(place, read<uint64_t>("a tensor's offset"));
  tensor.type = type;
  tensor.format = find_weight_format(type);
  offset = place;
  if (tensor.format != nullptr && tensor.shape[0] % tensor.format->block != 0) {
    return broken("rows of tensor '{}' have {} weights, no multiple of {}'s block of {}", name,
                  tensor.shape[0], tensor.format->name, tensor.format->block);
  }
  // The weights fit 63 bits, but their bytes must, too: row_bytes() multiplies unchecked.
  if (tensor.format != nullptr &&
      tensor.shape[0] / tensor.format->block > INT64_MAX / tensor.format->block_bytes) {
    return broken("tensor '{}' is too big", name);
  }
  return Ok{};
}

Status GgufParser::place_tensors(ModelFile& file, size_t first, std::span<const uint64_t> offsets,
                                 uint64_t alignment) {
  const uint64_t data_begin = (at_ + alignment - 1) / alignment * alignment;
  if (data_begin > bytes_.size() && !offsets.empty())
    return broken("the file ends before its data");
  const uint64_t room = bytes_.size() - std::min<uint64_t>(data_begin, bytes_.size());
  uint64_t expected = 0;
  bool sizes_known = true;  // until a type whose size wok does not know
  for (size_t i = 0; i < offsets.size(); ++i) {
    ModelTensor& tensor = file.tensors_[first + i];
    if (offsets[i] % alignment != 0) {
      return broken("tensor '{}' lies at offset {}, not aligned to {}", tensor.name, offsets[i],
                    alignment);
    }
    if (sizes_known ? offsets[i] != expected : offsets[i] < expected) {
      return broken("tensor '{}' lies at offset {}, expected {}", tensor.name, offsets[i],
                    expected);
    }
    if (tensor.format == nullptr) {
      sizes_known = false;
      expected = offsets[i];
      continue;
    }
    sizes_known = true;
    const auto row = static_cast<uint64_t>(tensor.format->row_bytes(tensor.shape[0]));
    uint64_t size = 0;
    if (__builtin_mul_overflow(row, static_cast<uint64_t>(tensor.rows()), &size) ||
        offsets[i] > room || size > room - offsets[i]) {
      return broken("tensor '{}' reaches past the end of the file", tensor.name);
    }
    tensor.data = bytes_.subspan(data_begin + offsets[i], size);
    expected = offsets[i] + (size + alignment - 1) / alignment * alignment;
  }
  return Ok{};
}

Status GgufParser::parse(ModelFile& file, bool with_values) {
  uint64_t tensor_count = 0, value_count = 0;
  WOK_RETURN_IF_ERROR(read_header(tensor_count, value_count));
  uint64_t alignment = 32;
  std::unordered_set<std::string_view> keys;
  for (uint64_t i = 0; i < value_count; ++i) {
    WOK_TRY(key, read_string("a key", kMaxLength));
    if (!keys.insert(key).second) return broken("key '{}' is there twice", key);
    WOK_TRY(type, read<uint32_t>("a key's value type"));
    const size_t begin = at_;
    WOK_TRY(value, read_value(type, std::string(key)));
    if (with_values) file.keys_.push_back({key, type, bytes_.subspan(begin, at_ - begin)});
    if (key == "general.alignment") {
      const auto* number = std::get_if<uint64_t>(&value);
      if (number == nullptr || !std::has_single_bit(*number) || *number > (1u << 20)) {
        return broken("general.alignment is not a power of two up to 2^20");
      }
      alignment = *number;
    }
    // Split bookkeeping belongs to each part; everything else to the first.
    if (with_values)
      file.values_.emplace(key, value);
    else if (key.starts_with("split."))
      file.values_.insert_or_assign(key, value);
  }
  const size_t first = file.tensors_.size();
  std::vector<uint64_t> offsets;
  offsets.reserve(tensor_count);
  file.tensors_.reserve(first + tensor_count);
  for (uint64_t i = 0; i < tensor_count; ++i) {
    ModelTensor tensor;
    uint64_t offset = 0;
    WOK_RETURN_IF_ERROR(read_tensor_info(tensor, offset));
    if (!file.tensor_index_.emplace(tensor.name, file.tensors_.size()).second) {
      return broken("tensor '{}' is there twice", tensor.name);
    }
    file.tensors_.push_back(tensor);
    offsets.push_back(offset);
  }
  return place_tensors(file, first, offsets, alignment);
}

}  // namespace wok
