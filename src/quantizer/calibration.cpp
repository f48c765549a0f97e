#include "quantizer/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kv/kv_format.h"

namespace wok {
namespace {

class Collector final : public ActivationTap {
 public:
  Collector(LayerGrams& grams, const KernelTable& kernels, ComputePool& pool, int32_t experts)
      : grams_(grams), product_(kernels, pool), pool_(pool), experts_(experts) {}

  void see(int32_t, TapSite site, const Activations& x,
           std::span<const ExpertRows> groups) override {
    switch (site) {
      case TapSite::kAttention:
        return add(grams_.attention, x, 0, x.rows);
      case TapSite::kAttentionOut:
        return add(grams_.attention_out, x, 0, x.rows);
      case TapSite::kFeedForward:
        return add(grams_.feed_forward, x, 0, x.rows);
      case TapSite::kDown:
        return add(grams_.down, x, 0, x.rows);
      case TapSite::kExperts:
        return add(grams_.experts, x, groups);
      case TapSite::kExpertDown:
        return add(grams_.expert_down, x, groups);
    }
  }

 private:
  void add(Gram& gram, const Activations& x, int32_t begin, int32_t end) {
    if (gram.cols() == 0) gram = Gram(x.cols, grams_.squares_only);
    gram.add(x.f32 + static_cast<int64_t>(begin) * x.cols, end - begin, product_, pool_);
  }
  void add(std::vector<Gram>& grams, const Activations& x, std::span<const ExpertRows> groups) {
    if (grams.empty()) grams.assign(experts_, Gram(x.cols, grams_.squares_only));
    for (const ExpertRows& g : groups) add(grams[g.expert], x, g.row_begin, g.row_end);
  }

  LayerGrams& grams_;
  FloatProduct product_;
  ComputePool& pool_;
  int32_t experts_;
};

}  // namespace

Calibration::Calibration(const Model& model, std::vector<int32_t> tokens, int32_t chunk_tokens,
                         PageMemory memory, ComputePool& pool)
    : model_(&model),
      pool_(&pool),
      tokens_(std::move(tokens)),
      positions_(chunk_tokens),
      owner_(chunk_tokens, 0),
      pages_((chunk_tokens + kPageTokens - 1) / kPageTokens),
      chunk_tokens_(chunk_tokens),
      memory_(std::move(memory)),
      work_(std::make_unique<Workspace>(model.config(), model.weights(), chunk_tokens, 1, 1,
                                        pool.threads())),
      residuals_(tokens_.size() * model.config().embedding) {
  std::iota(positions_.begin(), positions_.end(), 0);
  std::iota(pages_.begin(), pages_.end(), 0);
}

Result<Calibration> Calibration::create(const Model& model, std::vector<int32_t> tokens,
                                        int32_t chunk_tokens, int32_t bos_id, ComputePool& pool) {
  const int32_t context = model.config().context_tokens;
  if (chunk_tokens < 1 || chunk_tokens > context) {
    return invalid(
        fmt::format("chunks of {} tokens for a model with a context of {}", chunk_tokens, context));
  }
  tokens.resize(tokens.size() / chunk_tokens * chunk_tokens);
  if (tokens.empty()) {
    return invalid(
        fmt::format("the calibration text is shorter than a chunk of {} tokens", chunk_tokens));
  }
  for (size_t first = 0; bos_id >= 0 && first < tokens.size(); first += chunk_tokens) {
    tokens[first] = bos_id;
  }
  const int32_t pages = (chunk_tokens + kPageTokens - 1) / kPageTokens;
  WOK_TRY(memory, PageMemory::create(model.kv_shape(kKvFormat_f16), pages));
  return Calibration(model, std::move(tokens), chunk_tokens, std::move(memory), pool);
}

Status Calibration::next_layer(LayerGrams* grams,
                               const std::function<bool(int32_t done)>& progress) {
  WOK_CHECK(layer_ < layers(), "a layer that the model has");
  std::unique_ptr<Collector> collector;
  if (grams != nullptr) {
    collector = std::make_unique<Collector>(*grams, model_->kernels(), *pool_,
                                            model_->config().experts.count);
  }
  work_->tap = collector.get();
  const SequenceSpan span{0, chunk_tokens_, chunk_tokens_, pages_.data()};
  const size_t floats = static_cast<size_t>(chunk_tokens_) * model_->config().embedding;
  for (int32_t i = 0; i < chunks(); ++i) {
    const std::span<const int32_t> chunk(tokens_.data() + int64_t{i} * chunk_tokens_,
                                         static_cast<size_t>(chunk_tokens_));
    float* kept = residuals_.data() + i * floats;
    // What a pass has made at its first layer (rotations, the attention's plan) is the same for
    // all chunks; only the residual is each chunk's own.
    if (layer_ > 0) std::copy_n(kept, floats, work_->residual.data());
    model_->forward_layers({chunk, positions_, {&span, 1}, owner_, {}, chunk_tokens_}, memory_,
                           *pool_, *work_, layer_, layer_ + 1);
    std::copy_n(work_->residual.data(), floats, kept);
    if (!progress(i + 1)) {
      work_->tap = nullptr;
      return Error{ErrorKind::kCancelled, "interrupted"};
    }
  }
  work_->tap = nullptr;
  ++layer_;
  return Ok{};
}

}  // namespace wok
