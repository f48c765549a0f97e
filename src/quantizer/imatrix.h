// Importance matrices: the mean squares of what each matrix is multiplied by, in GGUF files as
// llama.cpp's tool writes and reads them ("<tensor>.in_sum2" and "<tensor>.counts").
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"
#include "quantizer/calibration.h"

namespace wok {

class ImportanceMatrix {
 public:
  // Takes a layer's sums, by GGUF's names of the tensors that have those inputs.
  void add_layer(int32_t layer, const LayerGrams& grams);

  // Runs all of the text through the model. Errors: as Calibration's; kCancelled when `progress`,
  // told the share that is done, says false.
  static Result<ImportanceMatrix> measure(Calibration& calibration,
                                          const std::function<bool(double share)>& progress);

  // Errors: kIo.
  Status write(const std::string& path, const std::string& text, int32_t chunks,
               int32_t chunk_tokens) const;
  // Errors: kInvalid for a file of another kind; those of opening one.
  static Result<ImportanceMatrix> read(const std::string& path);

  // Of a tensor of `cols` columns: [experts or 1, cols]; null where nothing is known of it.
  // Errors: kInvalid where it is of another shape.
  Result<const float*> find(std::string_view tensor, int64_t cols, int64_t slabs) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    int64_t cols = 0, slabs = 1;
    std::vector<float> sums = {}, counts = {};  // [slabs, cols], [slabs]
    std::vector<float> means = {};              // [slabs, cols]
  };
  void put(const std::string& tensor, const std::vector<const Gram*>& slabs);
  void finish(Entry& entry);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace wok
