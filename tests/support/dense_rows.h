// A tensor's weights as floats, each where its input is, whatever the tensor's format and order.
#pragma once

#include <vector>

#include "formats/model_file.h"

namespace wok::test {

inline std::vector<float> dense_rows(const ModelTensor& tensor) {
  const int64_t cols = tensor.shape[0], rows = tensor.rows();
  std::vector<float> out(static_cast<size_t>(rows * cols));
  std::vector<uint8_t> buffer;
  const uint8_t* bytes = tensor.read_rows(0, rows, buffer);
  std::vector<float> row(static_cast<size_t>(cols));
  const auto order =
      tensor.source == nullptr ? std::span<const int32_t>() : tensor.source->column_order();
  for (int64_t r = 0; r < rows; ++r) {
    tensor.format->dequantize(bytes + r * tensor.format->row_bytes(cols), row.data(), cols);
    for (int64_t c = 0; c < cols; ++c) {
      out[static_cast<size_t>(r * cols + (order.empty() ? c : order[c]))] = row[c];
    }
  }
  return out;
}

}  // namespace wok::test
