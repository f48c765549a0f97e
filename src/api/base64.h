// Base64 (RFC 4648, section 4) of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wok {

inline void append_base64(std::string& out, const uint8_t* bytes, size_t size) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < size; i += 3) {
    const size_t left = size - i;
    uint32_t three = uint32_t{bytes[i]} << 16;
    if (left > 1) three |= uint32_t{bytes[i + 1]} << 8;
    if (left > 2) three |= bytes[i + 2];
    out += kDigits[three >> 18];
    out += kDigits[three >> 12 & 63];
    out += left > 1 ? kDigits[three >> 6 & 63] : '=';
    out += left > 2 ? kDigits[three & 63] : '=';
  }
}

}  // namespace wok
