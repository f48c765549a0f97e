// A model file's own account of itself, without loading weights.
#pragma once

#include <string>

#include "base/result.h"
#include "models/model_info.h"

namespace wok {

class ModelFile;

// Reads metadata only. Errors as ModelFile::open, and kUnsupported for an architecture wok lacks.
Result<ModelInfo> read_model_info(const ModelFile& file);
Result<ModelInfo> read_model_info(const std::string& path);

}  // namespace wok
