// Weight formats: one record each, in one list. The loader, `wok show` and the quantizers read the
// record; adding a format is one file and one name in WOK_WEIGHT_FORMATS.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"

namespace wok {

struct WeightFormat {
  const char* name;    // as GGUF's tools print it
  uint32_t gguf_type;  // ggml type id
  int32_t block;       // weights of one block; a row is whole blocks
  int32_t block_bytes;
  Family family;            // how it is packed
  DequantizeFn dequantize;  // reference: bytes of a row to f32
  // Integer families: `count` of the file's blocks as codes, block / 32 of `out` for each. Members
  // that the family does not use are left as they are.
  void (*codes)(const uint8_t* blocks, int64_t count, PackBlock* out);
  const int8_t* codebook = nullptr;  // Table families: what the codes name

  double bits_per_weight() const { return 8.0 * block_bytes / block; }
  int64_t row_bytes(int64_t cols) const { return cols / block * block_bytes; }
};

#define WOK_WEIGHT_FORMATS(X) \
  X(f32)                      \
  X(f16)                      \
  X(bf16)                     \
  X(q4_0)                     \
  X(q4_1)                     \
  X(q5_0)                     \
  X(q5_1)                     \
  X(q8_0)                     \
  X(q4_k)                     \
  X(q5_k)                     \
  X(q6_k)                     \
  X(q2_k)                     \
  X(q3_k)                     \
  X(iq4_nl)                   \
  X(iq4_xs)                   \
  X(iq3_xxs)                  \
  X(iq3_s)                    \
  X(iq2_xxs)                  \
  X(iq2_xs)                   \
  X(iq2_s)                    \
  X(iq1_s)                    \
  X(iq1_m)                    \
  X(mxfp4)                    \
  X(nvfp4)                    \
  X(tq1_0)                    \
  X(tq2_0)                    \
  X(q1_0)                     \
  X(q2_0)

#define WOK_DECLARE_FORMAT(id) extern const WeightFormat kWeightFormat_##id;
WOK_WEIGHT_FORMATS(WOK_DECLARE_FORMAT)
#undef WOK_DECLARE_FORMAT

std::span<const WeightFormat* const> weight_formats();

// Null when wok does not read this type.
const WeightFormat* find_weight_format(uint32_t gguf_type);

// The name of any known ggml type id, also of those wok does not read ("IQ2_XS"), or "type N".
std::string gguf_type_name(uint32_t gguf_type);

}  // namespace wok
