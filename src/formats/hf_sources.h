// Matrices made of others' rows: stacked experts, parts of fused modules, norms without their 1.
#pragma once

#include <string>
#include <vector>

#include "formats/hf_scheme.h"

namespace wok {

// One above the other; all of one shape and format. Errors: kInvalid names the module.
Result<HfMatrix> hf_stack(std::vector<HfMatrix> parts, const std::string& folder,
                          const std::string& module);

// Part `part` of `parts` equal ones of each of `slabs` slabs of rows.
Result<HfMatrix> hf_slice(const HfMatrix& from, int64_t slabs, int32_t part, int32_t parts,
                          const std::string& folder, const std::string& module);

// A vector plus 1, in f32.
HfMatrix hf_plus_one(const HfMatrix& from);

// Of F32, F16 and BF16; null for others.
const WeightFormat* hf_float_format(HfType type);

}  // namespace wok
