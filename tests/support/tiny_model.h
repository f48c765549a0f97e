// Synthetic models of a few thousand weights, seeded: every property test runs on them, also under
// the sanitizers, without a file.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "formats/gguf.h"
#include "kernels/isa.h"
#include "models/model.h"
#include "tests/support/gguf_writer.h"

namespace wok::test {

struct TinyShape {
  std::string architecture = "llama";
  int32_t layers = 2, embedding = 64, feed_forward = 96, heads = 4, kv_heads = 2, head_dim = 16;
  int32_t vocab = 160, context = 4096, window = 24;
  int32_t experts = 0, experts_used = 2, expert_feed_forward = 32, shared_feed_forward = 0;
  std::string type = "Q4_1";  // of the big matrices; F32, F16, Q4_1 or Q8_0
};

class TinyWriter {
 public:
  TinyWriter(const TinyShape& shape, uint32_t seed) : s_(shape), random_(seed) {}

  std::vector<uint8_t> bytes() {
    const std::string a = s_.architecture + ".";
    const bool gemma2 = s_.architecture == "gemma2", phi3 = s_.architecture == "phi3";
    const bool gpt_oss = s_.architecture == "gpt-oss";
    const bool gemma = s_.architecture == "gemma3", olmo2 = s_.architecture == "olmo2";
    const bool head_norms = gemma || s_.architecture == "qwen3" || s_.architecture == "qwen3moe";
    const bool whole_norms = olmo2 || s_.architecture == "olmoe";
    out_.key("general.architecture", s_.architecture);
    out_.key("general.name", std::string("tiny"));
    out_.key(a + "block_count", static_cast<uint32_t>(s_.layers));
    out_.key(a + "embedding_length", static_cast<uint32_t>(s_.embedding));
    out_.key(a + "feed_forward_length", static_cast<uint32_t>(s_.feed_forward));
    out_.key(a + "attention.head_count", static_cast<uint32_t>(s_.heads));
    out_.key(a + "attention.head_count_kv", static_cast<uint32_t>(s_.kv_heads));
    out_.key(a + "attention.key_length", static_cast<uint32_t>(s_.head_dim));
    out_.key(a + "attention.value_length", static_cast<uint32_t>(s_.head_dim));
    out_.key(a + "attention.layer_norm_rms_epsilon", 1e-5f);
    out_.key(a + "context_length", static_cast<uint32_t>(s_.context));
    out_.key(a + "rope.freq_base", 10000.0f);
    if (gemma || gemma2 || phi3 || gpt_oss) {
      out_.key(a + "attention.sliding_window", static_cast<uint32_t>(s_.window));
    }
    if (gemma2) {
      out_.key(a + "attn_logit_softcapping", 2.0f);
      out_.key(a + "final_logit_softcapping", 5.0f);
    }
    if (phi3) {
      out_.key(a + "rope.dimension_count", static_cast<uint32_t>(s_.head_dim / 2));
      out_.key(a + "rope.scaling.original_context_length", uint32_t{64});
      out_.key(a + "rope.scaling.attn_factor", 1.25f);
    }
    if (s_.experts > 0) {
      out_.key(a + "expert_count", static_cast<uint32_t>(s_.experts));
      out_.key(a + "expert_used_count", static_cast<uint32_t>(s_.experts_used));
      out_.key(a + "expert_feed_forward_length", static_cast<uint32_t>(s_.expert_feed_forward));
    }
    if (s_.shared_feed_forward > 0) {
      out_.key(a + "expert_shared_feed_forward_length",
               static_cast<uint32_t>(s_.shared_feed_forward));
    }
    if (s_.architecture.starts_with("granite")) {
      out_.key(a + "embedding_scale", 12.0f);
      out_.key(a + "residual_scale", 0.5f);
      out_.key(a + "attention.scale", 0.125f);
      out_.key(a + "logit_scale", 2.0f);
    }
    tokenizer();
    const int32_t q = s_.heads * s_.head_dim, kv = s_.kv_heads * s_.head_dim;
    matrix("token_embd.weight", s_.embedding, s_.vocab);
    if (phi3) {
      norm("rope_factors_long.weight", s_.head_dim / 4);
      norm("rope_factors_short.weight", s_.head_dim / 4);
    }
    for (int32_t i = 0; i < s_.layers; ++i) {
      const std::string b = "blk." + std::to_string(i) + ".";
      if (!olmo2) {
        norm(b + "attn_norm.weight", s_.embedding);
        norm(b + (gpt_oss ? "post_attention_norm.weight" : "ffn_norm.weight"), s_.embedding);
      }
      if (phi3) {
        matrix(b + "attn_qkv.weight", s_.embedding, q + 2 * kv);
      } else {
        matrix(b + "attn_q.weight", s_.embedding, q);
        matrix(b + "attn_k.weight", s_.embedding, kv);
        matrix(b + "attn_v.weight", s_.embedding, kv);
      }
      matrix(b + "attn_output.weight", q, s_.embedding);
      if (gpt_oss) {
        norm(b + "attn_sinks.weight", s_.heads);
        norm(b + "attn_output.bias", s_.embedding);
      }
      if (gpt_oss || s_.architecture.starts_with("qwen2")) {
        norm(b + "attn_q.bias", q);
        norm(b + "attn_k.bias", kv);
        norm(b + "attn_v.bias", kv);
      }
      if (s_.experts > 0) {
        experts(b);
      } else if (phi3) {
        matrix(b + "ffn_up.weight", s_.embedding, 2 * s_.feed_forward);
        matrix(b + "ffn_down.weight", s_.feed_forward, s_.embedding);
      } else {
        gated(b, "", s_.feed_forward);
      }
      if (head_norms || whole_norms) {
        norm(b + "attn_q_norm.weight", whole_norms ? q : s_.head_dim);
        norm(b + "attn_k_norm.weight", whole_norms ? kv : s_.head_dim);
      }
      if (gemma || gemma2 || olmo2) {
        norm(b + "post_attention_norm.weight", s_.embedding);
        norm(b + "post_ffw_norm.weight", s_.embedding);
      }
    }
    norm("output_norm.weight", s_.embedding);
    return out_.bytes();
  }

 private:
  // Tokens 0..2 are control, then single bytes in GPT-2's alphabet where they are printable.
  void tokenizer() {
    std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    std::vector<int32_t> kinds = {3, 3, 3};
    for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
    while (static_cast<int32_t>(tokens.size()) < s_.vocab) {
      tokens.push_back("t" + std::to_string(tokens.size()));
    }
    kinds.resize(tokens.size(), 1);
    out_.key("tokenizer.ggml.model", std::string("gpt2"));
    out_.key("tokenizer.ggml.pre", std::string("smollm"));
    out_.key("tokenizer.ggml.tokens", tokens);
    out_.key("tokenizer.ggml.token_type", kinds);
    out_.key("tokenizer.ggml.merges", std::vector<std::string>{"t 1"});
    out_.key("tokenizer.ggml.eos_token_id", uint32_t{2});
    out_.key("tokenizer.ggml.add_bos_token", false);
  }

  void gated(const std::string& layer, const std::string& suffix, int32_t width) {
    matrix(layer + "ffn_gate" + suffix + ".weight", s_.embedding, width);
    matrix(layer + "ffn_up" + suffix + ".weight", s_.embedding, width);
    matrix(layer + "ffn_down" + suffix + ".weight", width, s_.embedding);
  }

  void experts(const std::string& layer) {
    const int32_t width = s_.expert_feed_forward, n = s_.experts;
    const std::string type = std::exchange(s_.type, "F32");  // routers are never quantized
    matrix(layer + "ffn_gate_inp.weight", s_.embedding, n);
    s_.type = type;
    matrix(layer + "ffn_gate_exps.weight", s_.embedding, width, n);
    matrix(layer + "ffn_up_exps.weight", s_.embedding, width, n);
    matrix(layer + "ffn_down_exps.weight", width, s_.embedding, n);
    if (s_.architecture == "gpt-oss") {
      norm(layer + "ffn_gate_inp.bias", n);
      norm(layer + "ffn_gate_exps.bias", width, n);
      norm(layer + "ffn_up_exps.bias", width, n);
      norm(layer + "ffn_down_exps.bias", s_.embedding, n);
    }
    if (s_.shared_feed_forward == 0) return;
    gated(layer, "_shexp", s_.shared_feed_forward);
    if (s_.architecture == "qwen2moe") norm(layer + "ffn_gate_inp_shexp.weight", s_.embedding);
  }

  void norm(const std::string& name, int32_t n, int32_t count = 1) {
    std::normal_distribution<float> around_one(1.0f, 0.1f);
    std::vector<uint8_t> data(4u * n * count);
    for (int32_t i = 0; i < n * count; ++i) {
      const float v = around_one(random_);
      std::memcpy(&data[i * 4u], &v, 4);
    }
    out_.tensor(name, 0, count == 1 ? std::vector<int64_t>{n} : std::vector<int64_t>{n, count},
                data);
  }

  void matrix(const std::string& name, int32_t cols, int32_t rows_of_one, int32_t experts = 1) {
    const int32_t rows = rows_of_one * experts;
    const WeightFormat* format = nullptr;
    for (const WeightFormat* f : weight_formats()) {
      if (s_.type == f->name) format = f;
    }
    WOK_CHECK(format != nullptr, "a known type");
    std::vector<uint8_t> data(static_cast<size_t>(format->row_bytes(cols) * rows));
    const float spread = 1.0f / std::sqrt(static_cast<float>(cols));
    std::normal_distribution<float> normal(0.0f, spread);
    const int64_t blocks = static_cast<int64_t>(cols) / format->block * rows;
    for (int64_t b = 0; b < blocks; ++b) {
      uint8_t* at = data.data() + b * format->block_bytes;
      if (s_.type == "F32") {
        const float v = normal(random_);
        std::memcpy(at, &v, 4);
        continue;
      }
      if (s_.type == "F16") {
        put_half(at, normal(random_));
        continue;
      }
      for (int32_t i = 0; i < format->block_bytes; ++i) at[i] = static_cast<uint8_t>(random_());
      if (s_.type == "Q8_0") put_half(at, spread / 64);
      if (s_.type == "Q4_1") {
        put_half(at, spread / 4);
        put_half(at + 2, -spread * 1.875f);
      }
    }
    std::vector<int64_t> shape = {cols, rows_of_one};
    if (experts > 1) shape.push_back(experts);
    out_.tensor(name, format->gguf_type, shape, data);
  }
  TinyShape s_;
  std::mt19937 random_;
  GgufWriter out_;
};

// Gemma needs six layers to have a global one.
inline TinyShape tiny_gemma() {
  TinyShape shape;
  shape.architecture = "gemma3";
  shape.layers = 6;
  shape.kv_heads = 1;
  shape.type = "Q8_0";
  return shape;
}

// Heads wider than embedding / heads, as the small Qwen 3 models have.
inline TinyShape tiny_qwen3() {
  TinyShape shape;
  shape.architecture = "qwen3";
  shape.head_dim = 32;
  shape.type = "Q8_0";
  return shape;
}

// By architecture's name; "mixtral" is "llama" with experts.
inline TinyShape tiny_shape(const std::string& architecture) {
  if (architecture == "gemma3") return tiny_gemma();
  if (architecture == "qwen3") return tiny_qwen3();
  TinyShape shape;
  shape.architecture = architecture;
  if (architecture == "mixtral") {
    shape.architecture = "llama";
    shape.experts = 4;
    return shape;
  }
  if (architecture.ends_with("moe")) {
    shape.experts = 6;
    if (architecture == "qwen2moe") shape.shared_feed_forward = 64;
    if (architecture == "granitemoe") shape.shared_feed_forward = 32;
  }
  if (architecture == "gpt-oss") shape.experts = 4;
  if (architecture == "smollm3") shape.layers = 4;  // the last of them does not rotate
  return shape;
}

struct TinyModel {
  std::vector<uint8_t> bytes;  // what the model's file reads from
  std::unique_ptr<ComputePool> pool;
  std::unique_ptr<Model> model;
};

inline TinyModel make_tiny(const TinyShape& shape, const std::string& isa = "", uint32_t seed = 1,
                           int32_t threads = 2) {
  TinyModel tiny;
  tiny.bytes = TinyWriter(shape, seed).bytes();
  auto file = parse_gguf(tiny.bytes, "tiny.gguf");
  WOK_CHECK(file.ok(), file.ok() ? "" : file.error().message.c_str());
  auto choice = choose_isa(isa);
  WOK_CHECK(choice.ok(), "an instruction set of this machine");
  tiny.pool = std::make_unique<ComputePool>(threads);
  auto model = Model::load(std::make_shared<const ModelFile>(std::move(file).value()),
                           *choice->kernels, {"", tiny.pool.get()});
  WOK_CHECK(model.ok(), model.ok() ? "" : model.error().message.c_str());
  tiny.model = std::move(model).value();
  return tiny;
}

}  // namespace wok::test
