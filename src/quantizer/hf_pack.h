// GroupedMatrix in the layouts of GPTQ's and AWQ's checkpoints, as transformers, vLLM and SGLang
// read them. The other direction: formats/hf_gptq.cpp, formats/hf_awq.cpp.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors_writer.h"
#include "quantizer/grouped_matrix.h"

namespace wok {

// qweight, qzeros, scales and g_idx of module `name`, in format "gptq" (zero - 1 is stored).
// rows * bits and cols * bits are whole words.
std::vector<SafetensorsEntry> pack_gptq(const std::string& name, const GroupedMatrix& m);

// qweight, qzeros and scales, "gemm". 4 bits; rows % 8 == 0.
std::vector<SafetensorsEntry> pack_awq(const std::string& name, const GroupedMatrix& m);

}  // namespace wok
