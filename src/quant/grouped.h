// What the integer formats of Hugging Face checkpoints (GPTQ, AWQ, compressed-tensors) become
// before they are packed: rows of one kind of block, whatever the file's order of bits. Not in
// weight_formats(): no GGUF file has them.
#pragma once

#include "quant/weight_format.h"

namespace wok {

inline constexpr uint32_t kNoGgufType = 0xffffffff;

// 32 weights: scale * (code - zero).
struct GroupedBlock {
  float scale;
  float zero;  // a whole number
  uint8_t code[kBlockColumns];
};

extern const WeightFormat kWeightFormat_int4_group;  // codes 0..15; 4 blocks have the same factors
extern const WeightFormat kWeightFormat_int4_point;  // codes 0..15
extern const WeightFormat kWeightFormat_int2;        // codes 0..3, zero 1
extern const WeightFormat kWeightFormat_int8;        // codes in two's complement, zero 0

}  // namespace wok
