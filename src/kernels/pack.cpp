#include "kernels/pack.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace wok {
namespace {

size_t block_bytes(Family family, int32_t width) {
  const auto w = static_cast<size_t>(width);
  switch (family) {
    case Family::kInt4:
      return w * (2 + 2 + 16);
    case Family::kInt5:
      return w * (2 + 2 + 16 + 4);
    case Family::kInt6:
      return w * (4 + 16 + 8);
    case Family::kInt8:
      return w * (2 + 32);
    default:
      return 0;
  }
}

void put_half(uint8_t* at, float value) {
  const uint16_t bits = float_to_half(value);
  std::memcpy(at, &bits, sizeof(bits));
}

}  // namespace

size_t packed_panel_bytes(Family family, int32_t width, int32_t cols) {
  switch (family) {
    case Family::kFloat16:
    case Family::kBFloat16:
      return static_cast<size_t>(width) * cols * 2;
    case Family::kFloat32:
      return static_cast<size_t>(width) * cols * 4;
    default:
      WOK_CHECK(cols % kBlockColumns == 0, "integer panels hold whole blocks of columns");
      return block_bytes(family, width) * (cols / kBlockColumns);
  }
}

void pack_block(Family family, int32_t width, const PackBlock& block, int32_t block_index,
                int32_t row_in_panel, uint8_t* panel) {
  uint8_t* at = panel + block_bytes(family, width) * block_index;
  const int r = row_in_panel;
  const int vector_bytes = width * 4;
  put_half(at + 2 * r, block.scale[0]);
  uint8_t* codes = at + 4 * width;
  if (family == Family::kInt8) codes = at + 2 * width;
  if (family == Family::kInt6) {
    put_half(at + 2 * width + 2 * r, block.scale[1]);
  } else if (family != Family::kInt8) {
    put_half(at + 2 * width + 2 * r, block.min);
  }
  for (int c = 0; c < kBlockColumns; ++c) {
    const int group = c / 4;
    const int byte = 4 * r + c % 4;
    const uint8_t code = block.code[c];
    if (family == Family::kInt8) {
      codes[group * vector_bytes + byte] = code;
      continue;
    }
    const int shift = group < 4 ? 0 : 4;
    codes[(group % 4) * vector_bytes + byte] |= static_cast<uint8_t>((code & 15) << shift);
    uint8_t* upper = codes + 4 * vector_bytes;
    if (family == Family::kInt5) {
      upper[byte] |= static_cast<uint8_t>((code >> 4) << group);
    } else if (family == Family::kInt6) {
      upper[(group / 4) * vector_bytes + byte] |=
          static_cast<uint8_t>((code >> 4) << (2 * (group % 4)));
    }
  }
}

void pack_float_row(Family family, int32_t width, const uint8_t* row, int32_t cols,
                    int32_t row_in_panel, uint8_t* panel) {
  const size_t size = family == Family::kFloat32 ? 4 : 2;
  for (int32_t c = 0; c < cols; ++c) {
    std::memcpy(panel + (static_cast<size_t>(c) * width + row_in_panel) * size, row + c * size,
                size);
  }
}

}  // namespace wok
