// Tensors of GPT-OSS's folders that are no modules: attention's sinks, and all experts of a layer
// in one tensor, either in MXFP4 or in floats with inputs before outputs. Rows of gate and up
// alternate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_scheme.h"

namespace wok {

struct HfNamed {
  std::string name;  // as GGUF names it, with .weight or .bias
  HfMatrix matrix;
};

bool is_gpt_oss_tensor(std::string_view name);

// What GGUF has of one such tensor: one or two. Scales belong to their blocks and give none.
// Errors: kInvalid names a tensor that is missing or of another shape; kUnsupported one that wok
// has no place for.
Result<std::vector<HfNamed>> read_gpt_oss_tensor(const std::string& name, const HfTensors& tensors,
                                                 const std::string& folder);

}  // namespace wok
