// wok quantize of a Hugging Face folder: GPTQ, AWQ or plain rounding to folders that transformers,
// vLLM and SGLang load, and an importance matrix, all from one pass of a text through the model.
//
// A folder is made under the name OUT.part, a shard a layer, and gets its own name when it is
// whole. What a killed run left there is taken up again where it is of the same source, settings
// and text: the layers that are done are not quantized again, and the bytes are the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "quantizer/folder_layer.h"

namespace wok {

struct FolderOutput {
  FolderMethod method = FolderMethod::kGptq;
  std::string path;
};

struct FolderJob {
  const Model* model = nullptr;  // loaded from the folder
  std::string folder;
  std::vector<FolderOutput> outputs;
  std::string imatrix;  // a GGUF file to write, or ""
  std::string text;     // what the calibration text is called
  FolderOptions options;
  std::vector<int32_t> tokens;
  int32_t chunk_tokens = 512;
  int32_t bos_id = -1;  // takes the place of each chunk's first token; -1: nothing does
};

struct FolderReport {
  struct Method {
    FolderMethod method;
    std::string path = {};
    uint64_t bytes = 0;
    int32_t resumed_layers = 0;
    std::vector<ModuleReport> modules = {};  // of resumed layers, too
  };
  std::vector<Method> methods;
  int32_t group = 0;
  int64_t calibration_tokens = 0;
  double seconds = 0, calibration_s = 0;
};

// Errors: kInvalid for an output that is there already or shapes that the format does not take;
// kUnsupported for a source that is quantized; kBusy where another run writes to the same place;
// kIo; kCancelled when `progress`, told the share that is done, says false.
Result<FolderReport> quantize_folder(const FolderJob& job, ComputePool& pool,
                                     const std::function<bool(double share)>& progress);

}  // namespace wok
