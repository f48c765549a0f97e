// Owners for what crosses rust_abi.h, so that no path forgets to give it back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/rust_abi.h"

namespace wok {

template <class T, void (*kFree)(T*)>
struct RustFree {
  void operator()(T* handle) const { kFree(handle); }
};
template <class T, void (*kFree)(T*)>
using RustHandle = std::unique_ptr<T, RustFree<T, kFree>>;

struct RustText {
  RustText() = default;
  RustText(const RustText&) = delete;
  RustText& operator=(const RustText&) = delete;
  ~RustText() { wok_text_free(raw); }
  std::string_view view() const { return {raw.data, raw.size}; }

  wok_text raw = {};
};

struct RustIds {
  RustIds() = default;
  RustIds(const RustIds&) = delete;
  RustIds& operator=(const RustIds&) = delete;
  ~RustIds() { wok_ids_free(raw); }
  std::span<const int32_t> view() const { return {raw.data, raw.size}; }

  wok_ids raw = {};
};

inline wok_bytes rust_bytes(std::string_view text) {
  return {text.data(), text.size()};
}

inline Error rust_error(wok_status status, std::string_view message) {
  return status == WOK_UNSUPPORTED ? unsupported(std::string(message))
                                   : invalid(std::string(message));
}

}  // namespace wok
