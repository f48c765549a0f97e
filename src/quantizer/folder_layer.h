// One decoder layer of a Hugging Face folder, quantized: its linear modules in codes, all else as
// it was, except what AWQ's factors were folded into.
#pragma once

#include <string>
#include <vector>

#include "formats/hf_config.h"
#include "formats/hf_shards.h"
#include "formats/safetensors_writer.h"
#include "models/architecture.h"
#include "quantizer/calibration.h"
#include "quantizer/grouped_matrix.h"

namespace wok {

enum class FolderMethod : uint8_t { kRound, kGptq, kAwq };

const char* method_name(FolderMethod method);  // "rtn", "gptq", "awq"

struct FolderOptions {
  int32_t bits = 4;
  int32_t group = 128;     // -1: whole rows
  bool symmetric = true;   // AWQ is never
  bool act_order = false;  // GPTQ: groups of columns of like importance, named by g_idx
  float damping = 0.01f;   // GPTQ
};

struct ModuleReport {
  std::string name = {};      // "model.layers.0.mlp.up_proj"
  std::string fallback = {};  // why it was rounded to nearest, or kept as it was; "" when neither
  bool kept = false;
  int64_t weights = 0;
  double weight_error = 0;  // root mean square of what was lost, by that of the weights
  double output_error = 0;  // the same of the outputs on the calibration text
};

// A linear module that can be quantized, and the gram that its inputs have.
struct LinearModule {
  std::string name;   // of the folder
  std::string place;  // GGUF's ("attn_q")
  int64_t expert = -1;
  const HfTensor* tensor = nullptr;
};

// What the folder holds, sorted: which tensors are layer i's, and which of them are linear modules.
struct FolderPlan {
  std::vector<std::vector<std::string>> tensors;   // by layer
  std::vector<std::vector<LinearModule>> modules;  // by layer, in the order of their names
  std::vector<std::string> outside;                // tensors of no layer
  std::vector<ModuleReport> kept;                  // modules of shapes that no reader takes
};
// Errors: kUnsupported for a folder that is quantized already.
Result<FolderPlan> plan_folder(const HfShards& shards, const HfConfig& config, int32_t layers,
                               const std::string& folder);

// The largest of the group that was asked for, 64 and 32 that divides all rows; -1 stays.
// Errors: kInvalid where none does.
Result<int32_t> common_group(const FolderPlan& plan, int32_t asked, const std::string& folder);

struct LayerResult {
  std::vector<SafetensorsEntry> entries;
  std::vector<ModuleReport> modules;
};

LayerResult quantize_layer(const HfShards& shards, const FolderPlan& plan, const HfConfig& config,
                           const DecoderConfig& decoder, int32_t layer, FolderMethod method,
                           const FolderOptions& options, LayerGrams& grams,
                           const KernelTable& kernels, ComputePool& pool);

}  // namespace wok
