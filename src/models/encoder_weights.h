// An encoder's weights, ready for one kernel table.
#pragma once

#include <vector>

#include "base/result.h"
#include "formats/model_file.h"
#include "models/encoder_config.h"
#include "models/weights.h"

namespace wok {

struct LayerNormWeights {
  std::vector<float> weight, bias;
};

struct EncoderLayerWeights {
  Matrix q, k, v, o, up, down;
  std::vector<float> q_bias, k_bias, v_bias, o_bias, up_bias, down_bias;
  LayerNormWeights attention_norm, output_norm;  // after the sublayers, as the original has them
};

struct EncoderWeights {
  const ModelTensor* tokens = nullptr;  // rows are dequantized as tokens need them
  std::vector<float> positions, types;  // [positions, embedding], [token types, embedding]
  LayerNormWeights embedding_norm;
  std::vector<EncoderLayerWeights> layers;
  // Of Pooling::kRank: score = out · tanh(pooler x + pooler_bias) + out_bias.
  Matrix pooler;
  std::vector<float> pooler_bias, out, out_bias;
};

// As collect_weights; also kUnsupported for a tensor that no part of the encoder reads.
Result<std::vector<MatrixPlace>> collect_encoder_weights(const ModelFile& file,
                                                         const EncoderConfig& config,
                                                         EncoderWeights& weights);

}  // namespace wok
