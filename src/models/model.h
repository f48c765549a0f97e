// A model: a file's weights in the layout of one kernel table, and its forward pass. Immutable once
// loaded; forward() may run on one thread per Workspace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/lazy_vector.h"
#include "base/result.h"
#include "formats/model_file.h"
#include "kv/page_memory.h"
#include "layers/attention.h"
#include "layers/batch.h"
#include "layers/compute.h"
#include "layers/experts.h"
#include "layers/rope.h"
#include "layers/step_profile.h"
#include "layers/tap.h"
#include "models/model_info.h"
#include "models/pack_weights.h"
#include "models/weights.h"

namespace wok {

// Everything forward() writes; sized once for the largest batch, so a step allocates nothing, and
// resident only as far as the batches were large.
struct Workspace {
  Workspace(const DecoderConfig& config, const DecoderWeights& weights, int32_t max_tokens,
            int32_t max_sequences, int32_t max_logit_rows, int32_t threads);

  int32_t max_tokens, max_sequences, max_logit_rows;
  LazyVector<float> residual;  // [tokens, embedding]
  LazyVector<float> sublayer;  // [tokens, embedding], where a bias, a norm or a scale follows
  LazyVector<float> q, k, v;   // [tokens, heads * head_dim]
  LazyVector<float> gate, up;  // [tokens, feed_forward]
  ActivationBuffer input;      // norm outputs, [tokens, embedding]
  ActivationBuffer attended;   // [tokens, heads * head_dim]
  ActivationBuffer gated;      // [tokens, feed_forward]
  // Of experts; rows are (token, expert) pairs, sorted by expert.
  ExpertRouting routing;
  LazyVector<float> router_logits;              // [tokens, experts]
  LazyVector<float> expert_gate, expert_up;     // [rows, feed_forward of one]
  LazyVector<float> expert_out;                 // [rows, embedding]
  ActivationBuffer expert_input, expert_gated;  // [rows, embedding], [rows, feed_forward of one]
  RopeTable rope, rope_local;
  Attention attention;
  LazyVector<float> logits;      // [logit rows, vocab]
  std::vector<uint8_t> scratch;  // use aligned_scratch()
  size_t scratch_stride;
  uint8_t* aligned_scratch() {
    return scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  }
  ActivationTap* tap = nullptr;    // sees what matrices are multiplied by; null: nobody does
  StepProfile* profile = nullptr;  // where forward() notes its times; null: nowhere
};

class Model {
 public:
  // `file` is kept: embedding rows (and, for the reference table, all weights) are read from it.
  // Errors: an incomplete or unsupported model; those of PackMemory::open.
  static Result<std::unique_ptr<Model>> load(std::shared_ptr<const ModelFile> file,
                                             const KernelTable& kernels,
                                             const ModelOptions& options);

  const DecoderConfig& config() const { return config_; }
  const KernelTable& kernels() const { return *kernels_; }
  const DecoderWeights& weights() const { return weights_; }
  const ModelFile& file() const { return *file_; }
  const PackMemory& packed() const {
    return packed_.memory;
  }  // empty where the table reads the file
  KvShape kv_shape(const KvFormat& format) const {
    return {config_.layers, config_.kv_heads, config_.head_dim, &format};
  }

  // Computes the batch, writing its keys and values into `memory`; logits of batch.logit_rows are
  // in workspace.logits afterwards, [logit_rows, vocab].
  void forward(const Batch& batch, const PageMemory& memory, ComputePool& pool,
               Workspace& workspace) const;
  // Layers [first, end) of it only. A pass is calls with the same batch and workspace from layer 0
  // to the last; between them other batches may run in other workspaces.
  void forward_layers(const Batch& batch, const PageMemory& memory, ComputePool& pool,
                      Workspace& workspace, int32_t first, int32_t end) const;

 private:
  Model() = default;

  std::shared_ptr<const ModelFile> file_;
  const KernelTable* kernels_ = nullptr;
  DecoderConfig config_;
  DecoderWeights weights_;
  PackedWeights packed_;
};

}  // namespace wok
