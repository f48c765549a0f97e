// KV formats: one record each, in one list. All formats share the page's shape (pages.h); a format
// says what an element is and which kernels read and write it.
#pragma once

#include <span>
#include <string_view>

#include "kernels/kernels.h"

namespace wok {

struct KvFormat {
  const char* name;
  int32_t element_bytes;
  KvKernels KernelTable::*kernels;         // store and attend of any instruction set
  float (*dequantize)(const uint8_t* at);  // reference: one element
  const char* quality;                     // what it costs, as measured
};

#define WOK_KV_FORMATS(X) \
  X(f16)                  \
  X(bf16)

#define WOK_DECLARE_KV(id) extern const KvFormat kKvFormat_##id;
WOK_KV_FORMATS(WOK_DECLARE_KV)
#undef WOK_DECLARE_KV

std::span<const KvFormat* const> kv_formats();
const KvFormat* find_kv_format(std::string_view name);  // null when unknown

}  // namespace wok
