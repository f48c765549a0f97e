// Parameters of OpenAI's and vLLM's APIs that wok cannot serve: refused by name when they ask for
// something, accepted when their value asks for nothing. And those that change nothing anyway.
#pragma once

#include "api/fields.h"

namespace wok {

void check_refused_params(Fields& fields);

}  // namespace wok
