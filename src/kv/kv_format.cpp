#include "kv/kv_format.h"

#include "base/half.h"

namespace wok {

const KvFormat kKvFormat_f16 = {
    "f16", 2, &KernelTable::kv_f16,
    [](const uint8_t* at) { return half_to_float(load_unaligned<uint16_t>(at)); },
    "the baseline: 11 bits of mantissa"};
const KvFormat kKvFormat_bf16 = {
    "bf16", 2, &KernelTable::kv_bf16,
    [](const uint8_t* at) { return bf16_to_float(load_unaligned<uint16_t>(at)); },
    "8 bits of mantissa, float's range"};

std::span<const KvFormat* const> kv_formats() {
#define WOK_LIST_KV(id) &kKvFormat_##id,
  static constexpr const KvFormat* kAll[] = {WOK_KV_FORMATS(WOK_LIST_KV)};
#undef WOK_LIST_KV
  return kAll;
}

const KvFormat* find_kv_format(std::string_view name) {
  for (const KvFormat* format : kv_formats()) {
    if (name == format->name) return format;
  }
  return nullptr;
}

}  // namespace wok
