// Granite 3's mixtures of experts: Granite with experts in every layer.
#include "models/arch/granite_scales.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const ModelFile& file) {
  WOK_TRY(config, read_baseline(file, "granitemoe"));
  WOK_RETURN_IF_ERROR(read_granite_scales(file, "granitemoe", config));
  WOK_RETURN_IF_ERROR(read_experts(file, "granitemoe", config));
  config.experts.normalize = true;
  return config;
}

}  // namespace

const Architecture kArchitecture_granitemoe = {"granitemoe", read_config};

}  // namespace wok
