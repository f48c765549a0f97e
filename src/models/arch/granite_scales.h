// The multipliers that IBM's Granite models have in common.
#pragma once

#include <string>

#include "models/architecture.h"

namespace wok {

// embedding_scale, residual_scale, attention.scale and logit_scale of the file, into `config`.
// Errors: kInvalid names a number that is out of range.
Status read_granite_scales(const ModelFile& file, const std::string& arch, DecoderConfig& config);

}  // namespace wok
