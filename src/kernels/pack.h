// The packed panel layout. A panel is W = panel_rows rows (8 or 16). Integer families lay it out in
// runs of S blocks of 32 columns: first the factors of the run, then the codes of each block, so
// that every vector of codes is aligned to its size.
//   family             S   factors                                               codes of a block
//   kInt4, kInt5       1   f16 scale[W], f16 min[W]                              4 or 5 vectors
//   kInt4Zero, 5Zero   2   f16 scale[2][W]; weight = scale * (code - 8 or 16)    4 or 5
//   kInt4Group         4   f16 scale[W], f16 zero[W]; weight = scale * (code - zero)  4
//   kInt4Point         1   likewise                                              4
//   kInt4Super, 5Super 8   f16 d[W], f16 dmin[W], {u8 scale[W], u8 min[W]}[8]    4 or 5
//   kInt6Super         8   f16 d[W], {i8 scale[W] of columns 0-15, of 16-31}[8],
//                          padding to a vector                                   6
//   kInt8              2   f16 scale[2][W]                                       8
//   kInt2Zero          2   f16 scale[2][W]                                       2
//   kInt2Super         8   f16 d[W], f16 dmin[W], {u8 scale | min << 4 [W] of
//                          columns 0-15, of 16-31}[8]                            2
//   kInt3Super         8   f32 d[W], {i8 scale[W] of columns 0-15, of 16-31}[8]  3
//   kTable4            2   f16 scale[2][W]                                       4
//   kTable4Halves      1   f16 scale[W] of columns 0-15, of 16-31                4
//   kTable4Super       8   as kInt3Super                                         4
//   kTable3Super       8   as kInt3Super                                         3
// A vector is 4 W bytes. A column group is 4 columns; group g of row r is bytes 4r..4r+3 of vector
// g: one 4-byte broadcast of activations meets W rows at once, without a horizontal sum. Nibble
// vector v (of 4) holds group v in its low and group v+4 in its high halves. Fifth bits (vector 4):
// bit g of byte (r, j) belongs to column 4g + j. Bit pairs of kInt6Super (vectors 4, 5): vector 4 +
// g/4, bits 2 * (g % 4); those of codes of 2 and 3 bits likewise in vectors 0 and 1, and third bits
// in vector 2 as fifth bits are in 4. A last run that is not full is padded with zeros. Float
// families: [cols][W] elements. Rows past the matrix's end are zero. A weight is scale * code +
// min; of the Super families d * scale * code - dmin * min, of kInt6Super d * scale * (code - 32),
// of kInt3Super d * scale * (code - 4); of Table families codebook[code] stands for the code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace wok {

// 32 columns of one row in codes, as a weight format hands them over.
struct PackBlock {
  uint8_t code[kBlockColumns];  // kInt8: two's complement
  float scale;                  // of the Super families: d
  float min;                    // of the Super families: dmin; the Zero families have none;
                                // kInt4Group, kInt4Point: the zero point, a whole number
  uint8_t scale_code[2];        // Super families: of the block, or of its halves (then as int8)
  uint8_t min_code;             // kInt4Super, kInt5Super
  uint8_t half_min_code[2];     // kInt2Super
  float second_scale;           // kTable4Halves: of columns 16-31
};

// Codes of an integer family are below this.
int32_t code_levels(Family family);

// What a block's weight in column c is. The codebook is the matrix's, of Table families.
float unpacked_weight(Family family, const int8_t* codebook, const PackBlock& block, int c);

// Blocks that a run holds together: rows of Super families are whole runs.
int32_t run_blocks(Family family);

// Bytes of one panel of `width` rows and `cols` columns. cols % 32 == 0 for integer families.
size_t packed_panel_bytes(Family family, int32_t width, int32_t cols);

// Writes one row's block into its place in the panel. The panel starts zeroed.
void pack_block(Family family, int32_t width, const PackBlock& block, int32_t block_index,
                int32_t row_in_panel, uint8_t* panel);

// Writes one row's blocks from block_index on: the same bytes as pack_block, which is the plain
// form that tests compare with, a word at a time.
void pack_blocks(Family family, int32_t width, std::span<const PackBlock> blocks,
                 int32_t block_index, int32_t row_in_panel, uint8_t* panel);

// Writes one float row (bytes as in the family: 2 or 4 an element).
void pack_float_row(Family family, int32_t width, const uint8_t* row, int32_t cols,
                    int32_t row_in_panel, uint8_t* panel);

}  // namespace wok
