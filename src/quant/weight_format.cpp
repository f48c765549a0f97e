#include "quant/weight_format.h"

#include <fmt/format.h>

namespace wok {

std::span<const WeightFormat* const> weight_formats() {
#define WOK_LIST_FORMAT(id) &kWeightFormat_##id,
  static constexpr const WeightFormat* kAll[] = {WOK_WEIGHT_FORMATS(WOK_LIST_FORMAT)};
#undef WOK_LIST_FORMAT
  return kAll;
}

const WeightFormat* find_weight_format(uint32_t gguf_type) {
  for (const WeightFormat* format : weight_formats()) {
    if (format->gguf_type == gguf_type) return format;
  }
  return nullptr;
}

std::string gguf_type_name(uint32_t gguf_type) {
  // Ids from the GGUF specification; the gaps are types that were removed.
  static constexpr const char* kNames[] = {
      "F32",     "F16",   "Q4_0",   "Q4_1",  "",      "",       "Q5_0", "Q5_1",    "Q8_0",
      "Q8_1",    "Q2_K",  "Q3_K",   "Q4_K",  "Q5_K",  "Q6_K",   "Q8_K", "IQ2_XXS", "IQ2_XS",
      "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",   "I16",     "I32",
      "I64",     "F64",   "IQ1_M",  "BF16",  "",      "",       "",     "TQ1_0",   "TQ2_0",
      "",        "",      "",       "MXFP4", "NVFP4", "Q1_0",   "Q2_0"};
  if (gguf_type < std::size(kNames) && kNames[gguf_type][0] != '\0') return kNames[gguf_type];
  return fmt::format("type {}", gguf_type);
}

}  // namespace wok
