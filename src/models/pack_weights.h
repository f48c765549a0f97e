// Lays a model's matrices out for one kernel table: in a pack file's mapping or in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "models/pack_file.h"
#include "models/weights.h"

namespace wok {

struct ModelOptions {
  std::string pack_dir;  // "": keep no pack files
  ComputePool* pool = nullptr;
  PackMode pack_mode = PackMode::kUse;
  // Tokens of the contexts that will be served: some models rotate longer ones otherwise. 0: all
  // that the model takes.
  int32_t context_tokens = 0;
};

// What packed matrices point into.
struct PackedWeights {
  PackMemory memory;                       // empty where the table reads the file
  std::vector<std::vector<uint8_t>> made;  // rows of sources, where the table reads rows
  bool ordered = false;                    // some matrix has a column order
};

// Fills the matrices of `places`. Errors: those of PackMemory::open.
Result<PackedWeights> pack_weights(const ModelFile& file, const KernelTable& kernels,
                                   const ModelOptions& options,
                                   const std::vector<MatrixPlace>& places);

}  // namespace wok
