#include "kernels/pack.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace wok {
namespace {

struct Layout {
  int run;           // blocks of a run
  int factor_bytes;  // of a run, per row of the panel
  int padding;       // vectors' quarters after them, per row of the panel
  int code_vectors;  // of a block
};

constexpr Layout layout_of(Family family) {
  switch (family) {
    case Family::kInt4:
    case Family::kInt4Point:
      return {1, 4, 0, 4};
    case Family::kInt4Group:
      return {4, 4, 0, 4};
    case Family::kInt5:
      return {1, 4, 0, 5};
    case Family::kInt4Zero:
      return {2, 4, 0, 4};
    case Family::kInt5Zero:
      return {2, 4, 0, 5};
    case Family::kInt4Super:
      return {8, 4 + 16, 0, 4};
    case Family::kInt5Super:
      return {8, 4 + 16, 0, 5};
    case Family::kInt6Super:
      return {8, 2 + 16, 2, 6};
    case Family::kInt8:
      return {2, 4, 0, 8};
    case Family::kInt2Zero:
      return {2, 4, 0, 2};
    case Family::kInt2Super:
      return {8, 4 + 16, 0, 2};
    case Family::kInt3Super:
    case Family::kTable3Super:
      return {8, 4 + 16, 0, 3};
    case Family::kTable4:
      return {2, 4, 0, 4};
    case Family::kTable4Halves:
      return {1, 4, 0, 4};
    case Family::kTable4Super:
      return {8, 4 + 16, 0, 4};
    default:
      break;
  }
  WOK_CHECK(false, "float families have no blocks");
  return {};
}

constexpr bool has_fifth_bits(Family family) {
  return family == Family::kInt5 || family == Family::kInt5Zero || family == Family::kInt5Super;
}

// Codes of two or three bits: pairs of bits in two vectors, third bits in one more.
constexpr bool has_bit_pairs(Family family) {
  return family == Family::kInt2Zero || family == Family::kInt2Super ||
         family == Family::kInt3Super || family == Family::kTable3Super;
}
constexpr bool has_third_bits(Family family) {
  return family == Family::kInt3Super || family == Family::kTable3Super;
}

size_t head_bytes(const Layout& l, int32_t width) {
  return static_cast<size_t>(l.factor_bytes + l.padding) * width;
}

size_t run_bytes(const Layout& l, int32_t width) {
  return head_bytes(l, width) + static_cast<size_t>(l.run) * l.code_vectors * width * 4;
}

void put_codes(Family family, const uint8_t* code, int width, int r, uint8_t* codes) {
  const int vector_bytes = width * 4;
  uint8_t* upper = codes + 4 * vector_bytes;
  for (int c = 0; c < kBlockColumns; ++c) {
    const int group = c / 4;
    const int byte = 4 * r + c % 4;
    if (family == Family::kInt8) {
      codes[group * vector_bytes + byte] = code[c];
      continue;
    }
    if (has_bit_pairs(family)) {
      codes[(group / 4) * vector_bytes + byte] |=
          static_cast<uint8_t>((code[c] & 3) << (2 * (group % 4)));
      if (has_third_bits(family)) {
        codes[2 * vector_bytes + byte] |= static_cast<uint8_t>((code[c] >> 2) << group);
      }
      continue;
    }
    const int shift = group < 4 ? 0 : 4;
    codes[(group % 4) * vector_bytes + byte] |= static_cast<uint8_t>((code[c] & 15) << shift);
    if (has_fifth_bits(family)) {
      upper[byte] |= static_cast<uint8_t>((code[c] >> 4) << group);
    } else if (family == Family::kInt6Super) {
      upper[(group / 4) * vector_bytes + byte] |=
          static_cast<uint8_t>((code[c] >> 4) << (2 * (group % 4)));
    }
  }
}

// put_codes of a whole column group at a time: the four codes of a group are one word.
template <Family kFamily>
void put_code_words(const uint8_t* code, int vector_bytes, uint8_t* to) {
  uint32_t words[kBlockColumns / 4];
  std::memcpy(words, code, sizeof(words));
  const auto put = [&](int vector, uint32_t word) {
    std::memcpy(to + vector * vector_bytes, &word, sizeof(word));
  };
  if constexpr (kFamily == Family::kInt8) {
    for (int g = 0; g < 8; ++g) put(g, words[g]);
    return;
  }
  // Bits `shift` and up of each group's codes, two a code: the groups of a half in one word.
  const auto put_pairs = [&](int vector, int shift) {
    for (int half = 0; half < 2; ++half) {
      uint32_t pairs = 0;
      for (int g = 0; g < 4; ++g) pairs |= (words[4 * half + g] >> shift & 0x03030303u) << (2 * g);
      put(vector + half, pairs);
    }
  };
  const auto put_bits = [&](int vector, int shift) {
    uint32_t bits = 0;
    for (int g = 0; g < 8; ++g) bits |= (words[g] >> shift & 0x01010101u) << g;
    put(vector, bits);
  };
  if constexpr (has_bit_pairs(kFamily)) {
    put_pairs(0, 0);
    if constexpr (has_third_bits(kFamily)) put_bits(2, 2);
    return;
  }
  constexpr uint32_t kNibbles = 0x0f0f0f0f;
  for (int g = 0; g < 4; ++g) put(g, (words[g] & kNibbles) | (words[g + 4] & kNibbles) << 4);
  if constexpr (has_fifth_bits(kFamily)) {
    put_bits(4, 4);
  } else if constexpr (kFamily == Family::kInt6Super) {
    put_pairs(4, 4);
  }
}

void put_factors(Family family, const PackBlock& block, int width, int i, int r, uint8_t* head) {
  switch (family) {
    case Family::kInt4:
    case Family::kInt4Group:
    case Family::kInt4Point:
    case Family::kInt5:
      put_half(head + 2 * r, block.scale);
      put_half(head + 2 * width + 2 * r, block.min);
      return;
    case Family::kInt4Super:
    case Family::kInt5Super:
      put_half(head + 2 * r, block.scale);
      put_half(head + 2 * width + 2 * r, block.min);
      head[4 * width + 2 * width * i + r] = block.scale_code[0];
      head[4 * width + 2 * width * i + width + r] = block.min_code;
      return;
    case Family::kInt2Super:
      put_half(head + 2 * r, block.scale);
      put_half(head + 2 * width + 2 * r, block.min);
      for (int half = 0; half < 2; ++half) {
        head[4 * width + 2 * width * i + width * half + r] =
            static_cast<uint8_t>(block.scale_code[half] | block.half_min_code[half] << 4);
      }
      return;
    case Family::kInt6Super:
      put_half(head + 2 * r, block.scale);
      head[2 * width + 2 * width * i + r] = block.scale_code[0];
      head[2 * width + 2 * width * i + width + r] = block.scale_code[1];
      return;
    case Family::kInt3Super:
    case Family::kTable3Super:
    case Family::kTable4Super:
      std::memcpy(head + 4 * r, &block.scale, sizeof(block.scale));
      head[4 * width + 2 * width * i + r] = block.scale_code[0];
      head[4 * width + 2 * width * i + width + r] = block.scale_code[1];
      return;
    case Family::kTable4Halves:
      put_half(head + 2 * r, block.scale);
      put_half(head + 2 * width + 2 * r, block.second_scale);
      return;
    default:
      put_half(head + 2 * width * i + 2 * r, block.scale);
      return;
  }
}

template <Family kFamily>
void put_blocks(int32_t width, std::span<const PackBlock> blocks, int32_t first, int32_t r,
                uint8_t* panel) {
  constexpr Layout kLayout = layout_of(kFamily);
  const int vector_bytes = width * 4;
  const size_t run = run_bytes(kLayout, width), head_size = head_bytes(kLayout, width);
  uint8_t* head = panel + run * (first / kLayout.run);
  int i = first % kLayout.run;
  for (const PackBlock& block : blocks) {
    put_factors(kFamily, block, width, i, r, head);
    put_code_words<kFamily>(block.code, vector_bytes,
                            head + head_size + i * kLayout.code_vectors * vector_bytes + 4 * r);
    if (++i == kLayout.run) {
      i = 0;
      head += run;
    }
  }
}

template <class Element>
void put_floats(int32_t width, const uint8_t* row, int32_t cols, int32_t r, uint8_t* panel) {
  for (int32_t c = 0; c < cols; ++c) {
    std::memcpy(panel + (static_cast<size_t>(c) * width + r) * sizeof(Element),
                row + c * sizeof(Element), sizeof(Element));
  }
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
      break;
  }
  WOK_CHECK(cols % kBlockColumns == 0, "integer panels hold whole blocks of columns");
  const Layout l = layout_of(family);
  const int32_t runs = (cols / kBlockColumns + l.run - 1) / l.run;
  return run_bytes(l, width) * runs;
}

int32_t code_levels(Family family) {
  switch (family) {
    case Family::kInt8:
      return 256;
    case Family::kInt6Super:
      return 64;
    case Family::kInt2Zero:
    case Family::kInt2Super:
      return 4;
    case Family::kInt3Super:
    case Family::kTable3Super:
      return 8;
    case Family::kInt5:
    case Family::kInt5Zero:
    case Family::kInt5Super:
      return 32;
    default:
      return 16;
  }
}

int32_t run_blocks(Family family) {
  return layout_of(family).run;
}

float unpacked_weight(Family family, const int8_t* codebook, const PackBlock& block, int c) {
  const auto code = static_cast<float>(block.code[c]);
  const int half = c / 16;
  const auto half_scale = [&] {
    return block.scale * static_cast<float>(static_cast<int8_t>(block.scale_code[half]));
  };
  const auto entry = [&] { return static_cast<float>(codebook[block.code[c]]); };
  switch (family) {
    case Family::kInt4Zero:
      return block.scale * (code - 8);
    case Family::kInt4Group:
    case Family::kInt4Point:
      return block.scale * (code - block.min);
    case Family::kInt5Zero:
      return block.scale * (code - 16);
    case Family::kInt8:
      return block.scale * static_cast<float>(static_cast<int8_t>(block.code[c]));
    case Family::kInt4Super:
    case Family::kInt5Super:
      return block.scale * static_cast<float>(block.scale_code[0]) * code -
             block.min * static_cast<float>(block.min_code);
    case Family::kInt6Super:
      return half_scale() * (code - 32);
    case Family::kInt2Zero:
      return block.scale * (code - 1);
    case Family::kInt2Super:
      return block.scale * static_cast<float>(block.scale_code[half]) * code -
             block.min * static_cast<float>(block.half_min_code[half]);
    case Family::kInt3Super:
      return half_scale() * (code - 4);
    case Family::kTable4:
      return block.scale * entry();
    case Family::kTable4Halves:
      return (c < 16 ? block.scale : block.second_scale) * entry();
    case Family::kTable4Super:
    case Family::kTable3Super:
      return half_scale() * entry();
    default:
      return block.scale * code + block.min;
  }
}

void pack_block(Family family, int32_t width, const PackBlock& block, int32_t block_index,
                int32_t row_in_panel, uint8_t* panel) {
  const Layout l = layout_of(family);
  const int r = row_in_panel, i = block_index % l.run;
  uint8_t* head = panel + run_bytes(l, width) * (block_index / l.run);
  put_factors(family, block, width, i, r, head);
  put_codes(family, block.code, width, r,
            head + head_bytes(l, width) + static_cast<size_t>(i) * l.code_vectors * width * 4);
}

void pack_blocks(Family family, int32_t width, std::span<const PackBlock> blocks,
                 int32_t block_index, int32_t row_in_panel, uint8_t* panel) {
  switch (family) {
#define WOK_PACK_BLOCKS(id) \
  case Family::id:          \
    return put_blocks<Family::id>(width, blocks, block_index, row_in_panel, panel);
    WOK_PACK_BLOCKS(kInt4)
    WOK_PACK_BLOCKS(kInt5)
    WOK_PACK_BLOCKS(kInt4Zero)
    WOK_PACK_BLOCKS(kInt5Zero)
    WOK_PACK_BLOCKS(kInt4Group)
    WOK_PACK_BLOCKS(kInt4Point)
    WOK_PACK_BLOCKS(kInt4Super)
    WOK_PACK_BLOCKS(kInt5Super)
    WOK_PACK_BLOCKS(kInt6Super)
    WOK_PACK_BLOCKS(kInt8)
    WOK_PACK_BLOCKS(kInt2Zero)
    WOK_PACK_BLOCKS(kInt2Super)
    WOK_PACK_BLOCKS(kInt3Super)
    WOK_PACK_BLOCKS(kTable4)
    WOK_PACK_BLOCKS(kTable4Halves)
    WOK_PACK_BLOCKS(kTable4Super)
    WOK_PACK_BLOCKS(kTable3Super)
#undef WOK_PACK_BLOCKS
    default:
      break;
  }
  WOK_CHECK(false, "float families have no blocks");
}

void pack_float_row(Family family, int32_t width, const uint8_t* row, int32_t cols,
                    int32_t row_in_panel, uint8_t* panel) {
  if (family == Family::kFloat32) {
    put_floats<uint32_t>(width, row, cols, row_in_panel, panel);
  } else {
    put_floats<uint16_t>(width, row, cols, row_in_panel, panel);
  }
}

}  // namespace wok
