#include "quant/grouped.h"

#include <cstring>

namespace wok {
namespace {

constexpr int kBytes = sizeof(GroupedBlock);

template <bool kSigned>
void dequantize(const uint8_t* row, float* out, int64_t n) {
  for (int64_t b = 0; b < n / kBlockColumns; ++b, row += kBytes) {
    GroupedBlock block;
    std::memcpy(&block, row, sizeof(block));
    for (const uint8_t code : block.code) {
      const auto value = static_cast<float>(kSigned ? static_cast<int8_t>(code) : int{code});
      *out++ = block.scale * (value - block.zero);
    }
  }
}

void codes(const uint8_t* row, int64_t count, PackBlock* out) {
  for (; count > 0; --count, row += kBytes, ++out) {
    GroupedBlock block;
    std::memcpy(&block, row, sizeof(block));
    out->scale = block.scale;
    out->min = block.zero;
    std::memcpy(out->code, block.code, sizeof(block.code));
  }
}

constexpr WeightFormat format(const char* name, Family family, DequantizeFn dequantize_row) {
  return {name, kNoGgufType, kBlockColumns, kBytes, family, dequantize_row, codes};
}

}  // namespace

const WeightFormat kWeightFormat_int4_group = format("INT4", Family::kInt4Group, dequantize<false>);
const WeightFormat kWeightFormat_int4_point =
    format("INT4 (32)", Family::kInt4Point, dequantize<false>);
const WeightFormat kWeightFormat_int2 = format("INT2", Family::kInt2Zero, dequantize<false>);
const WeightFormat kWeightFormat_int8 = format("INT8", Family::kInt8, dequantize<true>);

}  // namespace wok
