// The forward pass, to be read like the model's equations: a pre-norm decoder and its deviations.
#include <array>
#include <cmath>

#include "layers/gated.h"
#include "layers/linear.h"
#include "models/model.h"

namespace wok {
namespace {

class Forward {
 public:
  Forward(const DecoderConfig& config, const DecoderWeights& weights, const KernelTable& kernels,
          const Batch& batch, const PageMemory& memory, ComputePool& pool, Workspace& work)
      : c_(config),
        w_(weights),
        batch_(batch),
        memory_(memory),
        s_(work),
        tokens_(static_cast<int32_t>(batch.tokens.size())),
        compute_{&kernels, &pool, work.aligned_scratch(), work.scratch_stride} {}

  // What lasts from one layer to the next is in the workspace.
  void run(int32_t first, int32_t end) {
    if (first == 0) begin();
    for (int32_t i = first; i < end; ++i) {
      const LayerKind kind = c_.kinds.empty() ? LayerKind{} : c_.kinds[i];
      attention_sublayer(w_.layers[i], i, kind);
      normalize(w_.layers[i].feed_forward_norm, w_.layers[i].gate.column_order);
      show(i, TapSite::kFeedForward, s_.input);
      if (c_.experts.count > 0) experts_sublayer(w_.layers[i], i);
      if (w_.layers[i].gate.rows > 0) feed_forward_sublayer(w_.layers[i], i);
    }
    if (end == c_.layers) output();
  }

 private:
  void begin() {
    embed();
    s_.rope.fill(compute_, batch_.positions);
    if (c_.rope_base_local > 0) s_.rope_local.fill(compute_, batch_.positions);
    s_.attention.plan(batch_);
    const KernelTable& kernels = *compute_.kernels;
    s_.input.shape(kernels, tokens_, c_.embedding, batch_.exact_tokens);
    s_.attended.shape(kernels, tokens_, c_.heads * c_.head_dim, batch_.exact_tokens);
    if (const int32_t columns = w_.layers[0].gate.rows; columns > 0) {
      s_.gated.shape(kernels, tokens_, columns, batch_.exact_tokens);
    }
    if (const ExpertConfig& x = c_.experts; x.count > 0) {
      const int32_t rows = tokens_ * x.used, exact = batch_.exact_tokens * x.used;
      s_.expert_input.shape(kernels, rows, c_.embedding, exact);
      s_.expert_gated.shape(kernels, rows, x.feed_forward, exact);
    }
  }

  void show(int32_t layer, TapSite site, const ActivationBuffer& x,
            std::span<const ExpertRows> groups = {}) const {
    if (s_.tap != nullptr) s_.tap->see(layer, site, x.view(), groups);
  }

  float* residual(int32_t row) { return s_.residual.data() + int64_t{row} * c_.embedding; }

  // A region that streams these matrices once and multiplies `rows` rows by them; of experts
  // `touched` of `experts` are read, and a row meets one.
  ProfileScope timed(const char* name, int32_t rows, std::initializer_list<const Matrix*> weights,
                     double touched = 1, double experts = 1) {
    if (s_.profile == nullptr) return {nullptr, name};
    double bytes = 0, ops = 0;
    for (const Matrix* w : weights) {
      bytes += static_cast<double>(w->panel_bytes) * panel_count(*compute_.kernels, w->rows);
      ops += 2.0 * rows * w->rows * w->cols;
    }
    return {s_.profile, name, bytes * touched / experts, ops / experts};
  }
  ProfileScope timed(const char* name) { return {s_.profile, name}; }

  // Reads the keys and values that each sequence's rows see once.
  ProfileScope timed_attention(int32_t window) {
    if (s_.profile == nullptr) return {nullptr, "attention"};
    double positions = 0, products = 0;
    for (const SequenceSpan& span : batch_.sequences) {
      const double first = span.kv_len - span.query_len;
      const double most = window > 0 ? window : span.kv_len;
      positions += std::min<double>(span.kv_len, most + span.query_len);
      for (int32_t i = 0; i < span.query_len; ++i) products += std::min(first + i + 1, most);
    }
    const double dim = c_.head_dim;
    return {s_.profile, "attention",
            positions * 2 * c_.kv_heads * dim * memory_.shape().format->element_bytes,
            products * 4 * c_.heads * dim};
  }

  void embed() {
    const ProfileScope scope = timed("embed");
    const WeightFormat& format = *w_.embedding->format;
    const int64_t row_bytes = format.row_bytes(c_.embedding);
    compute_.for_rows(tokens_, [&](int32_t t) {
      float* x = residual(t);
      format.dequantize(w_.embedding->data.data() + batch_.tokens[t] * row_bytes, x, c_.embedding);
      scale(x, c_.embedding_scale);
    });
  }

  // input = quantize(rmsnorm(residual)), or of the residual itself, for matrices of one column
  // order.
  void normalize(const std::vector<float>& weight, const int32_t* column_order) {
    const ProfileScope scope = timed("norm + quantize");
    compute_.for_rows(tokens_, [&](int32_t t) {
      if (c_.pre_norms) {
        compute_.kernels->rmsnorm(residual(t), weight.data(), c_.norm_epsilon, c_.embedding,
                                  s_.input.row(t));
      } else {
        std::copy_n(residual(t), c_.embedding, s_.input.row(t));
      }
      s_.input.quantize_row(*compute_.kernels, t, column_order);
    });
  }

  // residual += W x + bias, through a norm or a scale where the architecture has one after its
  // sublayers.
  void add_to_residual(const char* name, const Matrix& weights, const Activations& x,
                       const std::vector<float>& post_norm, const std::vector<float>& bias = {}) {
    const ProfileScope scope = timed(name, tokens_, {&weights});
    if (!c_.post_norms && c_.residual_scale == 1 && bias.empty()) {
      linear(compute_, x, std::array{Linear{&weights, s_.residual.data(), true}});
      return;
    }
    linear(compute_, x, std::array{Linear{&weights, s_.sublayer.data()}});
    compute_.for_rows(tokens_, [&](int32_t t) {
      float* y = s_.sublayer.data() + int64_t{t} * c_.embedding;
      if (!bias.empty()) compute_.kernels->add(bias.data(), c_.embedding, y);
      if (c_.post_norms) {
        compute_.kernels->rmsnorm(y, post_norm.data(), c_.norm_epsilon, c_.embedding, y);
      }
      scale(y, c_.residual_scale);
      compute_.kernels->add(y, c_.embedding, residual(t));
    });
  }

  void scale(float* x, float by) const {
    if (by == 1) return;
    for (int32_t i = 0; i < c_.embedding; ++i) x[i] *= by;
  }

  void rotate(float* x, const RopeTable& rope, int32_t token) {
    const auto kernel = c_.rope_style == RopeStyle::kInterleaved
                            ? compute_.kernels->rope_interleaved
                            : compute_.kernels->rope_halves;
    kernel(x, rope.cos(token), rope.sin(token), c_.rope_dims);
  }

  // Biases, norm and rotation of one token's queries and keys, and its place in the KV pages.
  void place_token(const LayerWeights& layer, int32_t index, const RopeTable* rope, int32_t t) {
    const KernelTable& kernels = *compute_.kernels;
    const int32_t dim = c_.head_dim;
    const int32_t kv_width = c_.kv_heads * dim;
    float* q = s_.q.data() + int64_t{t} * c_.heads * dim;
    float* k = s_.k.data() + int64_t{t} * kv_width;
    float* v = s_.v.data() + int64_t{t} * kv_width;
    if (c_.qkv_bias) {
      kernels.add(layer.q_bias.data(), c_.heads * dim, q);
      kernels.add(layer.k_bias.data(), kv_width, k);
      kernels.add(layer.v_bias.data(), kv_width, v);
    }
    const bool by_heads = c_.qk_norm == QkNorm::kHeads;
    if (c_.qk_norm == QkNorm::kWhole) {
      kernels.rmsnorm(q, layer.q_norm.data(), c_.norm_epsilon, c_.heads * dim, q);
      kernels.rmsnorm(k, layer.k_norm.data(), c_.norm_epsilon, kv_width, k);
    }
    for (int32_t h = 0; h < c_.heads; ++h, q += dim) {
      if (by_heads) kernels.rmsnorm(q, layer.q_norm.data(), c_.norm_epsilon, dim, q);
      if (rope != nullptr) rotate(q, *rope, t);
    }
    const KvKernels& kv = kernels.*memory_.shape().format->kernels;
    const int32_t* pages = batch_.sequences[batch_.token_sequence[t]].page_table;
    for (int32_t h = 0; h < c_.kv_heads; ++h, k += dim, v += dim) {
      if (by_heads) kernels.rmsnorm(k, layer.k_norm.data(), c_.norm_epsilon, dim, k);
      if (rope != nullptr) rotate(k, *rope, t);
      kv.store(memory_.view(index, h), pages, batch_.positions[t], dim, k, v);
    }
  }

  void attention_sublayer(const LayerWeights& layer, int32_t index, const LayerKind& kind) {
    normalize(layer.attention_norm, layer.q.column_order);
    show(index, TapSite::kAttention, s_.input);
    {
      const ProfileScope scope = timed("q k v", tokens_, {&layer.q, &layer.k, &layer.v});
      linear(compute_, s_.input.view(),
             std::array{Linear{&layer.q, s_.q.data()}, Linear{&layer.k, s_.k.data()},
                        Linear{&layer.v, s_.v.data()}});
    }
    {
      const ProfileScope scope = timed("rope + kv store");
      const RopeTable* rope = kind.local_rope ? &s_.rope_local : &s_.rope;
      if (kind.no_rope) rope = nullptr;
      compute_.for_rows(tokens_, [&](int32_t t) { place_token(layer, index, rope, t); });
    }
    {
      const ProfileScope scope = timed_attention(kind.window);
      const float* sinks = layer.sinks.empty() ? nullptr : layer.sinks.data();
      s_.attention.run(compute_, batch_, memory_, {index, kind.window, sinks}, s_.q.data(),
                       s_.attended.row(0));
      compute_.for_rows(tokens_, [&](int32_t t) {
        s_.attended.quantize_row(*compute_.kernels, t, layer.o.column_order);
      });
    }
    show(index, TapSite::kAttentionOut, s_.attended);
    add_to_residual("attention out", layer.o, s_.attended.view(), layer.post_attention_norm,
                    layer.o_bias);
  }

  auto activation() const {
    switch (c_.activation) {
      case GateActivation::kSilu:
        return compute_.kernels->silu_mul;
      case GateActivation::kGelu:
        return compute_.kernels->gelu_mul;
      case GateActivation::kClampedGlu:
        break;
    }
    return compute_.kernels->clamped_glu;
  }

  // x += the bias of the expert that sorted row `row` meets.
  void add_expert_bias(const std::vector<float>& biases, int32_t row, int32_t n, float* x) const {
    if (!c_.experts.biases) return;
    compute_.kernels->add(biases.data() + int64_t{s_.routing.expert_of(row)} * n, n, x);
  }

  double touched() const { return static_cast<double>(s_.routing.groups().size()); }

  // residual += the sum of each token's experts.
  void experts_sublayer(const LayerWeights& layer, int32_t index) {
    const int32_t rows = tokens_ * c_.experts.used;
    {
      const ProfileScope scope = timed("route", tokens_, {&layer.router});
      linear(compute_, s_.input.view(), std::array{Linear{&layer.router, s_.router_logits.data()}});
      if (c_.experts.biases) {
        compute_.for_rows(tokens_, [&](int32_t t) {
          compute_.kernels->add(layer.router_bias.data(), c_.experts.count,
                                s_.router_logits.data() + int64_t{t} * c_.experts.count);
        });
      }
      s_.routing.route(compute_, s_.router_logits.data(), tokens_, batch_.exact_tokens);
      compute_.for_rows(rows, [&](int32_t r) {
        std::copy_n(s_.input.row(s_.routing.token_of(r)), c_.embedding, s_.expert_input.row(r));
        s_.expert_input.quantize_row(*compute_.kernels, r);
      });
    }
    show(index, TapSite::kExperts, s_.expert_input, s_.routing.groups());
    {
      const ProfileScope scope =
          timed("experts gate up", rows, {&layer.expert_gate, &layer.expert_up}, touched(),
                c_.experts.count);
      expert_linear(compute_, s_.expert_input.view(), s_.routing.groups(), c_.experts.count,
                    std::array{ExpertLinear{&layer.expert_gate, s_.expert_gate.data()},
                               ExpertLinear{&layer.expert_up, s_.expert_up.data()}});
      const int32_t columns = c_.experts.feed_forward;
      compute_.for_rows(rows, [&](int32_t r) {
        const int64_t at = int64_t{r} * columns;
        add_expert_bias(layer.gate_bias, r, columns, s_.expert_gate.data() + at);
        add_expert_bias(layer.up_bias, r, columns, s_.expert_up.data() + at);
        activation()(s_.expert_gate.data() + at, s_.expert_up.data() + at, columns,
                     s_.expert_gated.row(r));
        s_.expert_gated.quantize_row(*compute_.kernels, r);
      });
    }
    show(index, TapSite::kExpertDown, s_.expert_gated, s_.routing.groups());
    const ProfileScope scope =
        timed("experts down", rows, {&layer.expert_down}, touched(), c_.experts.count);
    expert_linear(compute_, s_.expert_gated.view(), s_.routing.groups(), c_.experts.count,
                  std::array{ExpertLinear{&layer.expert_down, s_.expert_out.data()}});
    if (c_.residual_scale != 1 || c_.experts.biases) {
      compute_.for_rows(rows, [&](int32_t r) {
        float* y = s_.expert_out.data() + int64_t{r} * c_.embedding;
        add_expert_bias(layer.down_bias, r, c_.embedding, y);
        scale(y, c_.residual_scale);
      });
    }
    s_.routing.combine(compute_, s_.expert_out.data(), c_.embedding, s_.residual.data());
  }

  // The gated MLP, or the expert that all tokens share.
  void feed_forward_sublayer(const LayerWeights& layer, int32_t index) {
    {
      const ProfileScope scope = timed("gate up activate", tokens_, {&layer.gate, &layer.up});
      gated_linear(compute_, s_.input.view(),
                   {.gate = &layer.gate,
                    .up = &layer.up,
                    .down = &layer.down,
                    .activate = activation(),
                    .gate_rows = s_.gate.data(),
                    .up_rows = s_.up.data(),
                    .keep_rows = s_.tap != nullptr},
                   s_.gated);
    }
    show(index, TapSite::kDown, s_.gated);
    if (c_.experts.shared_gate) return add_shared(layer);
    add_to_residual("down", layer.down, s_.gated.view(), layer.post_feed_forward_norm);
  }

  // residual += sigmoid(gate · input) * the shared expert.
  void add_shared(const LayerWeights& layer) {
    const ProfileScope scope = timed("shared down", tokens_, {&layer.down});
    linear(compute_, s_.gated.view(), std::array{Linear{&layer.down, s_.sublayer.data()}});
    compute_.for_rows(tokens_, [&](int32_t t) {
      const float* x = s_.input.row(t);
      double dot = 0;
      for (int32_t i = 0; i < c_.embedding; ++i) dot += x[i] * layer.shared_gate[i];
      float* y = s_.sublayer.data() + int64_t{t} * c_.embedding;
      scale(y, static_cast<float>(c_.residual_scale / (1 + std::exp(-dot))));
      compute_.kernels->add(y, c_.embedding, residual(t));
    });
  }

  // Logits of the rows that are asked for only.
  void output() {
    const auto rows = static_cast<int32_t>(batch_.logit_rows.size());
    if (rows == 0) return;
    const ProfileScope scope = timed("output head", rows, {&w_.output});
    s_.input.shape(*compute_.kernels, rows, c_.embedding, rows);
    compute_.for_rows(rows, [&](int32_t i) {
      compute_.kernels->rmsnorm(residual(batch_.logit_rows[i]), w_.output_norm.data(),
                                c_.norm_epsilon, c_.embedding, s_.input.row(i));
      s_.input.quantize_row(*compute_.kernels, i, w_.output.column_order);
    });
    linear(compute_, s_.input.view(), std::array{Linear{&w_.output, s_.logits.data()}});
    if (c_.logit_scale == 1 && c_.logit_cap == 0) return;
    compute_.for_rows(rows, [&](int32_t i) {
      float* y = s_.logits.data() + int64_t{i} * c_.vocab;
      if (c_.logit_scale != 1) {
        for (int32_t t = 0; t < c_.vocab; ++t) y[t] *= c_.logit_scale;
      }
      if (c_.logit_cap > 0) compute_.kernels->soft_cap(y, c_.logit_cap, c_.vocab);
    });
  }

  const DecoderConfig& c_;
  const DecoderWeights& w_;
  const Batch& batch_;
  const PageMemory& memory_;
  Workspace& s_;
  int32_t tokens_;
  Compute compute_;
};

}  // namespace

void Model::forward(const Batch& batch, const PageMemory& memory, ComputePool& pool,
                    Workspace& workspace) const {
  forward_layers(batch, memory, pool, workspace, 0, config_.layers);
}

void Model::forward_layers(const Batch& batch, const PageMemory& memory, ComputePool& pool,
                           Workspace& workspace, int32_t first, int32_t end) const {
  WOK_CHECK(0 <= first && first < end && end <= config_.layers, "layers that the model has");
  WOK_CHECK(static_cast<int32_t>(batch.tokens.size()) <= workspace.max_tokens &&
                static_cast<int32_t>(batch.logit_rows.size()) <= workspace.max_logit_rows,
            "a batch fits the workspace");
  if (batch.tokens.empty()) return;
  Forward(config_, weights_, *kernels_, batch, memory, pool, workspace).run(first, end);
}

}  // namespace wok
