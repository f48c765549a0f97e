// Runs a text through a model, layer by layer, and keeps what each layer's matrices are multiplied
// by. Between layers there are the text's activations only: memory is that of one layer's sums and
// of tokens * embedding floats.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "quantizer/gram.h"

namespace wok {

// Of one layer, by what reads the inputs; of experts one an expert.
struct LayerGrams {
  Gram attention, attention_out, feed_forward, down;
  std::vector<Gram> experts, expert_down;
  bool squares_only = false;  // said beforehand: the grams' diagonals are enough
};

class Calibration {
 public:
  // Whole chunks of the tokens; what is left over is not used. Errors: kInvalid where there is no
  // whole chunk, or a chunk is longer than the model's context; those of PageMemory::create.
  static Result<Calibration> create(const Model& model, std::vector<int32_t> tokens,
                                    int32_t chunk_tokens, int32_t bos_id, ComputePool& pool);

  int32_t layers() const { return model_->config().layers; }
  int32_t chunks() const { return static_cast<int32_t>(tokens_.size()) / chunk_tokens_; }

  // Computes the next layer. `grams`: where its sums go, null: nowhere. `progress` is told how many
  // chunks are done; false stops (kCancelled).
  Status next_layer(LayerGrams* grams, const std::function<bool(int32_t done)>& progress);

 private:
  Calibration(const Model& model, std::vector<int32_t> tokens, int32_t chunk_tokens,
              PageMemory memory, ComputePool& pool);

  const Model* model_;
  ComputePool* pool_;
  std::vector<int32_t> tokens_, positions_, owner_, pages_;
  int32_t chunk_tokens_, layer_ = 0;
  PageMemory memory_;
  std::unique_ptr<Workspace> work_;
  std::vector<float> residuals_;  // [tokens, embedding]
};

}  // namespace wok
