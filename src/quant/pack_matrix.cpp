#include "quant/pack_matrix.h"

#include <algorithm>

namespace wok {

size_t packed_matrix_bytes(const WeightFormat& format, const KernelTable& table, int32_t rows,
                           int32_t cols) {
  if (table.panel_rows == 0) return 0;
  return packed_panel_bytes(format.family, table.panel_rows, cols) * panel_count(table, rows);
}

void pack_panels(const WeightFormat& format, const KernelTable& table, int32_t rows, int32_t cols,
                 const uint8_t* rows_data, int32_t panel_begin, int32_t panel_end,
                 uint8_t* packed) {
  const int32_t width = table.panel_rows;
  const size_t panel_bytes = packed_panel_bytes(format.family, width, cols);
  const int64_t row_bytes = format.row_bytes(cols);
  // Codes of a stretch of a row at a time: few enough to stay in the fastest cache.
  constexpr int32_t kStretch = 64;
  const int32_t parts = format.block / kBlockColumns;
  PackBlock blocks[kStretch] = {};
  for (int32_t r = panel_begin * width; r < std::min(rows, panel_end * width); ++r) {
    const uint8_t* row = rows_data + (r - panel_begin * width) * row_bytes;
    uint8_t* panel = packed + r / width * panel_bytes;
    if (format.codes == nullptr) {
      pack_float_row(format.family, width, row, cols, r % width, panel);
      continue;
    }
    const int32_t all = cols / kBlockColumns;
    for (int32_t b = 0; b < all; b += kStretch) {
      const int32_t count = std::min(kStretch, all - b);
      format.codes(row + b / parts * format.block_bytes, count / parts, blocks);
      pack_blocks(format.family, width, {blocks, static_cast<size_t>(count)}, b, r % width, panel);
    }
  }
}

Matrix make_matrix(const WeightFormat& format, const KernelTable& table, int32_t rows, int32_t cols,
                   const uint8_t* rows_data, const uint8_t* packed) {
  Matrix m{.rows = rows, .cols = cols, .family = format.family, .dequantize = format.dequantize};
  m.native = table.panel_rows == 0;
  m.codebook = format.codebook;
  m.data = m.native ? rows_data : packed;
  m.panel_bytes = m.native ? static_cast<size_t>(format.row_bytes(cols))
                           : packed_panel_bytes(format.family, table.panel_rows, cols);
  return m;
}

}  // namespace wok
