// How checkpoints of Hugging Face's world quantize linear modules: one record a scheme, in one
// list. Which tensors a module has decides; the configuration gives the parameters, and where the
// two contradict each other the module is refused.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "formats/safetensors.h"

namespace wok {

// A module's tensors: "<name>.weight" and the like.
struct HfModule {
  std::string name;  // "model.layers.0.mlp.up_proj"
  const HfTensors* tensors = nullptr;
  std::string folder;  // for messages

  const HfTensor* find(const char* part) const;  // "qweight"
  Error wrong(const std::string& what) const;    // names the module and the folder
};

// A matrix as ModelTensor has it, before it has a name.
struct HfMatrix {
  int64_t rows = 0, cols = 0;
  const WeightFormat* format = nullptr;
  std::span<const uint8_t> data = {};
  std::shared_ptr<const RowSource> source = {};
  // The same weights as f32, in the inputs' own order: for where matrices that share an input
  // disagree about its order.
  std::shared_ptr<const RowSource> dense = {};
  std::span<const uint8_t> identity = {};  // with a source
  uint64_t stored_bytes = 0;
};

struct HfScheme {
  const char* method;  // quantization_config's quant_method
  const char* part;    // the tensor by which a module of this scheme is known
  Result<HfMatrix> (*read)(const HfModule& module, const nlohmann::json& config);
};

#define WOK_HF_SCHEMES(X) \
  X(gptq)                 \
  X(awq)                  \
  X(compressed_tensors)   \
  X(fp8)

#define WOK_DECLARE_SCHEME(id) extern const HfScheme kHfScheme_##id;
WOK_HF_SCHEMES(WOK_DECLARE_SCHEME)
#undef WOK_DECLARE_SCHEME

std::span<const HfScheme* const> hf_schemes();

// A module in F32, F16 or BF16: the file's own rows.
Result<HfMatrix> read_plain(const HfModule& module);

}  // namespace wok
