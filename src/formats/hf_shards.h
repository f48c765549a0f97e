// The safetensors files of a Hugging Face folder: model.safetensors, or the shards that
// model.safetensors.index.json names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/safetensors.h"

namespace wok {

struct HfShards {
  HfTensors tensors;                               // into the files
  std::vector<std::shared_ptr<MappedFile>> files;  // in the order of their names
};

// Errors: kNotFound, kIo and kInvalid name the shard or the tensor that is missing, that is there
// twice, or that lies outside the folder.
Result<HfShards> open_hf_shards(const std::string& folder);

}  // namespace wok
