// What a pack file's weights were made from, in a name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"
#include "models/weights.h"

namespace wok {

// PackId::model of these tensors: their shapes and types, the file's size, samples of the data and
// the file's time. A file of the store (sha256-<hex>) is named by its content's hash: that hash
// stands in front, so that removing the model finds its packs, and replaces samples and time, so
// that a cold start reads little of it and a copied store keeps its packs.
std::string packed_model_id(const ModelFile& file, const std::vector<MatrixPlace>& places);

// The same for whoever has not collected the weights. Errors: those of Model::load.
Result<std::string> packed_model_id(const ModelFile& file);

}  // namespace wok
