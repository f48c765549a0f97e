// The packed panel layout, one block of 32 columns by W = panel_rows rows (W is 8 or 16):
//   kInt4   f16 scale[W], f16 min[W], 4 vectors of W*4 bytes
//   kInt5   f16 scale[W], f16 min[W], 4 vectors, 1 vector of fifth bits
//   kInt6   f16 scale[2][W] (columns 0-15, 16-31), 4 vectors, 2 vectors of upper bit pairs
//   kInt8   f16 scale[W], 8 vectors of signed codes
// A column group is 4 columns; group g of row r is bytes 4r..4r+3 of vector g: one 4-byte broadcast
// of activations meets W rows at once, without a horizontal sum. Nibble vector v holds group v in
// its low and group v+4 in its high halves. Fifth bits: bit g of byte (r, j) belongs to column
// 4g + j. Bit pairs: vector g/4, bits 2*(g%4).
// Float families: [cols][W] elements. Rows past the matrix's end are zero.
// A weight is scale * code + min (kInt6: scale * (code - 32)).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace wok {

// 32 columns of one row in codes, as a weight format hands them over.
struct PackBlock {
  uint8_t code[kBlockColumns];  // kInt8: two's complement
  float scale[2];               // [1] is used by kInt6 only
  float min;
};

// Bytes of one panel of `width` rows and `cols` columns. cols % 32 == 0 for integer families.
size_t packed_panel_bytes(Family family, int32_t width, int32_t cols);

// Writes one row's block into its place in the panel. The panel starts zeroed.
void pack_block(Family family, int32_t width, const PackBlock& block, int32_t block_index,
                int32_t row_in_panel, uint8_t* panel);

// Writes one float row (bytes as in the family: 2 or 4 an element).
void pack_float_row(Family family, int32_t width, const uint8_t* row, int32_t cols,
                    int32_t row_in_panel, uint8_t* panel);

}  // namespace wok
