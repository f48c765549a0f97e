#pragma once

#include <vector>

#include "formats/hf_scheme.h"

namespace wok {

// A module with weights in F8_E4M3. block: rows and columns that have a factor; empty: it is of the
// whole matrix or of each row, as many as there are.
Result<HfMatrix> read_fp8(const HfModule& module, const std::vector<int64_t>& block);

}  // namespace wok
