#include "models/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "layers/full_attention.h"
#include "layers/gated.h"
#include "layers/linear.h"

namespace wok {
namespace {

// Tokens of a batch: enough rows to read each matrix's panel for many of them, few enough that what
// is between two layers stays in the caches.
constexpr int32_t kBatchTokens = 1024;

class Encoder final : public EmbeddingModel {
 public:
  Encoder(std::shared_ptr<const ModelFile> file, const KernelTable& kernels, ComputePool& pool,
          EncoderConfig config)
      : file_(std::move(file)), kernels_(kernels), pool_(pool), c_(config) {}

  Status load(const ModelOptions& options) {
    WOK_TRY(places, collect_encoder_weights(*file_, c_, w_));
    WOK_TRY(packed, pack_weights(*file_, kernels_, options, places));
    packed_ = std::move(packed);
    if (packed_.ordered) {
      return unsupported(
          fmt::format("'{}': an encoder whose columns have another order, which wok does not run",
                      file_->path()));
    }
    if (packed_.memory.bytes() > 0) file_->release_pages();
    reserve();
    return Ok{};
  }

  int32_t context_tokens() const override { return c_.context_tokens; }
  int32_t batch_tokens() const override { return std::max(kBatchTokens, c_.context_tokens); }
  int32_t vocab() const override { return c_.vocab; }
  int32_t token_types() const override { return c_.token_types; }
  bool ranks() const override { return c_.pooling == Pooling::kRank; }
  int32_t width() const override { return ranks() ? 1 : c_.embedding; }

  void compute(std::span<const TokenSequence* const> sequences, float* out) override {
    spans_.clear();
    tokens_ = 0;
    for (const TokenSequence* sequence : sequences) {
      const auto count = static_cast<int32_t>(sequence->tokens.size());
      WOK_CHECK(count > 0 && count <= c_.context_tokens, "a sequence fits the window");
      spans_.push_back({tokens_, count});
      tokens_ += count;
    }
    WOK_CHECK(tokens_ <= batch_tokens(), "a batch fits the workspace");
    input_.shape(kernels_, tokens_, c_.embedding, tokens_);
    attended_.shape(kernels_, tokens_, c_.embedding, tokens_);
    inner_.shape(kernels_, tokens_, c_.feed_forward, tokens_);
    embed(sequences);
    for (const EncoderLayerWeights& layer : w_.layers) {
      attention_sublayer(layer);
      feed_forward_sublayer(layer);
    }
    if (ranks()) {
      rank(out);
    } else {
      pool_states(out);
    }
  }

 private:
  void reserve() {
    const int32_t tokens = batch_tokens(), threads = pool_.threads();
    const size_t floats = static_cast<size_t>(tokens) * c_.embedding;
    for (LazyVector<float>* rows : {&q_, &k_, &v_}) rows->resize(floats);
    input_.reserve(tokens, c_.embedding);
    attended_.reserve(tokens, c_.embedding);
    inner_.reserve(tokens, c_.feed_forward);
    attention_.reserve(c_.heads, c_.head_dim, 1.0f / std::sqrt(static_cast<float>(c_.head_dim)),
                       c_.context_tokens, threads);
    const size_t stride =
        (linear_scratch_bytes(std::max(c_.embedding, c_.feed_forward)) + 127) / 128 * 128;
    scratch_.resize(stride * threads + 64);
    uint8_t* aligned =
        scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
    compute_ = {&kernels_, &pool_, aligned, stride};
  }

  void normalize(const LayerNormWeights& norm, int32_t t) {
    float* x = input_.row(t);
    kernels_.layernorm(x, norm.weight.data(), norm.bias.data(), c_.norm_epsilon, c_.embedding, x);
    input_.quantize_row(kernels_, t);
  }

  // input = norm(token + position + type)
  void embed(std::span<const TokenSequence* const> sequences) {
    const WeightFormat& format = *w_.tokens->format;
    const int64_t row_bytes = format.row_bytes(c_.embedding);
    compute_.for_rows(static_cast<int32_t>(sequences.size()), [&](int32_t s) {
      const TokenSequence& sequence = *sequences[s];
      for (int32_t i = 0; i < spans_[s].count; ++i) {
        const int32_t t = spans_[s].begin + i;
        const int32_t type = sequence.types.empty() ? 0 : sequence.types[i];
        float* x = input_.row(t);
        format.dequantize(w_.tokens->data.data() + sequence.tokens[i] * row_bytes, x, c_.embedding);
        kernels_.add(&w_.positions[size_t(i) * c_.embedding], c_.embedding, x);
        kernels_.add(&w_.types[size_t(type) * c_.embedding], c_.embedding, x);
        normalize(w_.embedding_norm, t);
      }
    });
  }

  // input = norm(input + W rows + bias); the sum is made in the input's own rows.
  void add_and_normalize(const Activations& rows, const Matrix& weights,
                         const std::vector<float>& bias, const LayerNormWeights& norm) {
    linear(compute_, rows, std::array{Linear{&weights, input_.row(0), true}});
    compute_.for_rows(tokens_, [&](int32_t t) {
      kernels_.add(bias.data(), c_.embedding, input_.row(t));
      normalize(norm, t);
    });
  }

  void attention_sublayer(const EncoderLayerWeights& layer) {
    linear(compute_, input_.view(),
           std::array{Linear{&layer.q, q_.data()}, Linear{&layer.k, k_.data()},
                      Linear{&layer.v, v_.data()}});
    compute_.for_rows(tokens_, [&](int32_t t) {
      const int64_t at = int64_t{t} * c_.embedding;
      kernels_.add(layer.q_bias.data(), c_.embedding, q_.data() + at);
      kernels_.add(layer.k_bias.data(), c_.embedding, k_.data() + at);
      kernels_.add(layer.v_bias.data(), c_.embedding, v_.data() + at);
    });
    attention_.run(compute_, spans_, q_.data(), k_.data(), v_.data(), attended_.row(0));
    compute_.for_rows(tokens_, [&](int32_t t) { attended_.quantize_row(kernels_, t); });
    add_and_normalize(attended_.view(), layer.o, layer.o_bias, layer.attention_norm);
  }

  void feed_forward_sublayer(const EncoderLayerWeights& layer) {
    linear(compute_, input_.view(), std::array{Linear{&layer.up, inner_.row(0)}});
    compute_.for_rows(tokens_, [&](int32_t t) {
      float* x = inner_.row(t);
      kernels_.gelu_bias(x, layer.up_bias.data(), c_.feed_forward, x);
      inner_.quantize_row(kernels_, t);
    });
    add_and_normalize(inner_.view(), layer.down, layer.down_bias, layer.output_norm);
  }

  void pool_states(float* out) {
    compute_.for_rows(static_cast<int32_t>(spans_.size()), [&](int32_t s) {
      const TokenSpan& span = spans_[s];
      float* y = out + int64_t{s} * c_.embedding;
      const int32_t one = c_.pooling == Pooling::kLast ? span.begin + span.count - 1 : span.begin;
      std::copy_n(input_.row(one), c_.embedding, y);
      if (c_.pooling == Pooling::kMean) {
        for (int32_t i = 1; i < span.count; ++i) {
          kernels_.add(input_.row(span.begin + i), c_.embedding, y);
        }
        scale(y, 1.0 / span.count);
      }
      if (!c_.normalize) return;
      double squares = 0;
      for (int32_t i = 0; i < c_.embedding; ++i) squares += double{y[i]} * y[i];
      scale(y, 1 / std::max(std::sqrt(squares), 1e-12));
    });
  }

  void scale(float* y, double by) const {
    for (int32_t i = 0; i < c_.embedding; ++i) y[i] = static_cast<float>(y[i] * by);
  }

  void rank(float* out) {
    const auto rows = static_cast<int32_t>(spans_.size());
    attended_.shape(kernels_, rows, c_.embedding, rows);
    for (int32_t s = 0; s < rows; ++s) {
      std::copy_n(input_.row(spans_[s].begin), c_.embedding, attended_.row(s));
      attended_.quantize_row(kernels_, s);
    }
    linear(compute_, attended_.view(), std::array{Linear{&w_.pooler, q_.data()}});
    for (int32_t s = 0; s < rows; ++s) {
      const float* x = q_.data() + int64_t{s} * c_.embedding;
      double sum = w_.out_bias[0];
      for (int32_t i = 0; i < c_.embedding; ++i) {
        sum += std::tanh(double{x[i]} + w_.pooler_bias[i]) * w_.out[i];
      }
      out[s] = static_cast<float>(sum);
    }
  }

  const std::shared_ptr<const ModelFile> file_;
  const KernelTable& kernels_;
  ComputePool& pool_;
  const EncoderConfig c_;
  EncoderWeights w_;
  PackedWeights packed_;
  // Of the batch.
  std::vector<TokenSpan> spans_;
  int32_t tokens_ = 0;
  ActivationBuffer input_;     // the states between sublayers, [tokens, embedding]
  ActivationBuffer attended_;  // [tokens, embedding]
  ActivationBuffer inner_;     // [tokens, feed_forward]
  LazyVector<float> q_, k_, v_;
  FullAttention attention_;
  std::vector<uint8_t> scratch_;
  Compute compute_;
};

}  // namespace

Result<std::unique_ptr<EmbeddingModel>> load_encoder(std::shared_ptr<const ModelFile> file,
                                                     const KernelTable& kernels,
                                                     const ModelOptions& options) {
  WOK_CHECK(options.pool != nullptr, "loading packs on a pool");
  WOK_TRY(config, read_encoder_config(*file));
  auto encoder = std::make_unique<Encoder>(std::move(file), kernels, *options.pool, config);
  WOK_RETURN_IF_ERROR(encoder->load(options));
  return std::unique_ptr<EmbeddingModel>(std::move(encoder));
}

}  // namespace wok
