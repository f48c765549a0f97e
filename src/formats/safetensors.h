// safetensors files (the format of Hugging Face's library of that name): an 8-byte length, a JSON
// header, tensors behind it. Every offset is compared with the bytes that are there; tensors tile
// the file without holes or overlap, as the format demands.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace wok {

enum class HfType : uint8_t { kF32, kF16, kBF16, kF8E4M3, kF8E5M2, kI64, kI32, kI8, kU8, kOther };

struct HfTensor {
  HfType type = HfType::kOther;
  std::string type_name;       // as the file has it
  std::vector<int64_t> shape;  // slowest first
  std::span<const uint8_t> data;

  int64_t dim(size_t i) const { return i < shape.size() ? shape[i] : 1; }
  int64_t elements() const;
  // Of the element types that are numbers with a fraction.
  float float_at(int64_t i) const;
  bool is_float() const;  // F32, F16 or BF16
};

// By name; sorted, so that everything made of it has one order.
using HfTensors = std::map<std::string, HfTensor, std::less<>>;

// Adds the tensors of one file. `name` stands in messages. Errors: kInvalid says what is wrong and
// where, also of a tensor that `tensors` has already.
Status parse_safetensors(std::span<const uint8_t> bytes, const std::string& name,
                         HfTensors& tensors);

}  // namespace wok
