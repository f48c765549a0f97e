// F32, F16 and BF16: no codes, packed as they are.
#include <cstring>

#include "base/half.h"
#include "quant/weight_format.h"

namespace wok {
namespace {

void from_f32(const uint8_t* row, float* out, int64_t n) {
  std::memcpy(out, row, n * 4);
}

void from_f16(const uint8_t* row, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = half_to_float(load_unaligned<uint16_t>(row + 2 * i));
}

void from_bf16(const uint8_t* row, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bf16_to_float(load_unaligned<uint16_t>(row + 2 * i));
}

}  // namespace

const WeightFormat kWeightFormat_f32 = {"F32", 0, 1, 4, Family::kFloat32, from_f32, nullptr};
const WeightFormat kWeightFormat_f16 = {"F16", 1, 1, 2, Family::kFloat16, from_f16, nullptr};
const WeightFormat kWeightFormat_bf16 = {"BF16", 30, 1, 2, Family::kBFloat16, from_bf16, nullptr};

}  // namespace wok
