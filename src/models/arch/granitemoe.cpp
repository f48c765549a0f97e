// Granite 3's mixtures of experts: Granite with experts in every layer.
#include "models/arch/granite_scales.h"

namespace wok {
namespace {

Result<DecoderConfig> read_config(const GgufFile& file) {
  WOK_TRY(config, read_baseline(file, "granitemoe"));
  WOK_RETURN_IF_ERROR(read_granite_scales(file, "granitemoe", config));
  WOK_RETURN_IF_ERROR(read_experts(file, "granitemoe", config));
  config.experts.normalize = true;
  WOK_TRY(shared, file.get_int("granitemoe.expert_shared_feed_forward_length"));
  if (shared.value_or(0) < 0 || shared.value_or(0) > (1 << 20)) {
    return invalid("'" + file.path() +
                   "': granitemoe.expert_shared_feed_forward_length is out of range");
  }
  config.experts.shared_feed_forward = static_cast<int32_t>(shared.value_or(0));
  return config;
}

}  // namespace

const Architecture kArchitecture_granitemoe = {"granitemoe", read_config};

}  // namespace wok
