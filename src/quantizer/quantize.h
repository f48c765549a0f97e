// wok quantize: a GGUF file's matrices in another mixture of formats, written to a new file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "quantizer/imatrix.h"
#include "quantizer/mixture.h"

namespace wok {

struct QuantizedTensor {
  std::string name;
  const WeightFormat* from = nullptr;
  const WeightFormat* to = nullptr;
  bool kept = false, fallback = false;
  int64_t weights = 0;
  uint64_t bytes = 0;
  bool weighted = false;  // by the importance matrix
  double error = 0;       // root mean square of what was lost, by that of the weights
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  uint64_t bytes_before = 0, bytes_after = 0;
  double bits_per_weight = 0;  // of the whole file's tensors
  bool was_quantized = false;  // the source had lost something already
  double seconds = 0;
};

// Writes `out`; nothing of that name is there unless all went well. Memory: a stretch of rows at a
// time. importance: how much errors of each column count, or null; matrices that it does not know
// do without. Errors: kInvalid for weights that are no numbers (named), an input that is the
// output, an importance matrix of another model; those of reading and writing; kCancelled when
// `progress`, told how many bytes of the source are done of how many, says false.
Result<QuantizeReport> quantize_file(
    const ModelFile& file, const std::string& out, const Mixture& mixture,
    const ImportanceMatrix* importance, ComputePool& pool,
    const std::function<bool(uint64_t done, uint64_t of)>& progress);

}  // namespace wok
