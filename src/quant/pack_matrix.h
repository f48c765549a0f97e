// From a file's rows to the layout of a kernel table.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "quant/weight_format.h"

namespace wok {

// Bytes of a packed [rows, cols] matrix; 0 when the table reads the file's own rows.
size_t packed_matrix_bytes(const WeightFormat& format, const KernelTable& table, int32_t rows,
                           int32_t cols);

// Packs the rows of panels [panel_begin, panel_end) from `rows_data` (row-major, the file's blocks;
// it begins with panel_begin's first row) into `packed`, the zeroed whole. Different panels may be
// packed by different threads.
void pack_panels(const WeightFormat& format, const KernelTable& table, int32_t rows, int32_t cols,
                 const uint8_t* rows_data, int32_t panel_begin, int32_t panel_end, uint8_t* packed);

// The matrix as the table's matmul takes it. `packed` is ignored when the table is native.
Matrix make_matrix(const WeightFormat& format, const KernelTable& table, int32_t rows, int32_t cols,
                   const uint8_t* rows_data, const uint8_t* packed);

}  // namespace wok
