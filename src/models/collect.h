// Finds a model's tensors by name and checks their shapes and types.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "formats/model_file.h"
#include "models/weights.h"

namespace wok {

// Matrices are noted in `places`, to be packed; vectors are read at once. Errors: those of
// collect_weights.
class Collector {
 public:
  Collector(const ModelFile& file, std::vector<MatrixPlace>& places)
      : file_(file), places_(places) {}

  Result<const ModelTensor*> find(const std::string& name, int64_t cols, int64_t rows) {
    const ModelTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      return invalid(fmt::format("'{}' has no tensor '{}'; the file is no complete model",
                                 file_.path(), name));
    }
    if (tensor->shape[0] != cols || tensor->rows() != rows) {
      return invalid(fmt::format("'{}': tensor '{}' is {} x {}, the model's keys demand {} x {}",
                                 file_.path(), name, tensor->shape[0], tensor->rows(), cols, rows));
    }
    if (tensor->format == nullptr) {
      std::string known;
      for (const WeightFormat* f : weight_formats()) {
        known += (known.empty() ? "" : ", ") + std::string(f->name);
      }
      return unsupported(fmt::format("'{}': tensor '{}' is of type {}; wok reads {}", file_.path(),
                                     name, gguf_type_name(tensor->type), known));
    }
    return tensor;
  }

  Status matrix(const std::string& name, int64_t cols, int64_t rows, Matrix& out) {
    WOK_TRY(tensor, find(name, cols, rows));
    places_.push_back({tensor, &out, 0, rows});
    return Ok{};
  }

  struct Part {
    Matrix* matrix;
    int64_t rows;
  };
  // Matrices that are one tensor, one above the other.
  Status stacked(const std::string& name, int64_t cols, std::initializer_list<Part> parts) {
    int64_t rows = 0;
    for (const Part& part : parts) rows += part.rows;
    WOK_TRY(tensor, find(name, cols, rows));
    int64_t first = 0;
    for (const Part& part : parts) {
      places_.push_back({tensor, part.matrix, first, part.rows});
      first += part.rows;
    }
    return Ok{};
  }

  Status vector(const std::string& name, int64_t n, std::vector<float>& out) {
    return vectors(name, n, 1, out);
  }

  // `count` of them one after the other.
  Status vectors(const std::string& name, int64_t n, int64_t count, std::vector<float>& out) {
    WOK_TRY(tensor, find(name, n, count));
    out.resize(static_cast<size_t>(n * count));
    std::vector<uint8_t> buffer;
    tensor->format->dequantize(tensor->read_rows(0, count, buffer), out.data(), n * count);
    return Ok{};
  }

 private:
  const ModelFile& file_;
  std::vector<MatrixPlace>& places_;
};

}  // namespace wok
