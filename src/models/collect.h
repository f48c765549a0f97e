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
    places_.push_back({tensor, &out});
    return Ok{};
  }

  Status vector(const std::string& name, int64_t n, std::vector<float>& out) {
    WOK_TRY(tensor, find(name, n, 1));
    out.resize(n);
    std::vector<uint8_t> buffer;
    tensor->format->dequantize(tensor->read_rows(0, 1, buffer), out.data(), n);
    return Ok{};
  }

 private:
  const ModelFile& file_;
  std::vector<MatrixPlace>& places_;
};

}  // namespace wok
