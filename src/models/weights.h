// A decoder's weights, ready for one kernel table: matrices packed into one block of memory (a pack
// file's mapping, or anonymous memory), norms as floats.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "models/architecture.h"

namespace wok {

struct LayerWeights {
  Matrix q, k, v, o, gate, up,
      down;  // the last three: of the shared expert where there are experts
  // experts: all of them one after the other
  Matrix router, expert_gate, expert_up, expert_down;
  std::vector<float> shared_gate;                                  // shared_gate
  std::vector<float> attention_norm, feed_forward_norm;            // pre_norms
  std::vector<float> q_bias, k_bias, v_bias, o_bias;               // qkv_bias, output_bias
  std::vector<float> router_bias;                                  // experts.biases: [experts]
  std::vector<float> gate_bias, up_bias, down_bias;                // [experts, rows of one]
  std::vector<float> sinks;                                        // attention_sinks: [heads]
  std::vector<float> q_norm, k_norm;                               // qk_norm
  std::vector<float> post_attention_norm, post_feed_forward_norm;  // post_norms
};

struct DecoderWeights {
  const ModelTensor* embedding = nullptr;  // rows are dequantized as tokens need them
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;
  Matrix output;
  std::vector<float> rope_factors;  // divisors of the RoPE frequencies (Llama 3, LongRoPE), or none
  bool ordered = false;             // some matrix has a column order
};

// Rows of a tensor of the file and where their matrix goes; made by collect_weights, filled by
// packing.
struct MatrixPlace {
  const ModelTensor* tensor;
  Matrix* matrix;
  int64_t first_row = 0, rows = 0;
};

// Finds and checks every tensor the config demands. Errors: kInvalid names a missing tensor or one
// of the wrong shape; kUnsupported a type wok does not read.
Result<std::vector<MatrixPlace>> collect_weights(const ModelFile& file, const DecoderConfig& config,
                                                 DecoderWeights& weights);

}  // namespace wok
