#include "models/encoder_weights.h"

#include <algorithm>
#include <set>
#include <string>

#include "models/collect.h"

namespace wok {
namespace {

// The collector, which remembers what was asked for.
class EncoderCollector {
 public:
  EncoderCollector(const ModelFile& file, std::vector<MatrixPlace>& places)
      : file_(file), from_(file, places) {}

  Status linear(const std::string& name, int64_t cols, int64_t rows, Matrix& matrix,
                std::vector<float>& bias) {
    WOK_RETURN_IF_ERROR(from_.matrix(seen(name + ".weight"), cols, rows, matrix));
    return from_.vector(seen(name + ".bias"), rows, bias);
  }
  Status norm(const std::string& name, int64_t n, LayerNormWeights& norm) {
    WOK_RETURN_IF_ERROR(from_.vector(seen(name + ".weight"), n, norm.weight));
    return from_.vector(seen(name + ".bias"), n, norm.bias);
  }
  Status vector(const std::string& name, int64_t n, std::vector<float>& out) {
    return from_.vector(seen(name), n, out);
  }
  // All rows of a small embedding, in float.
  Status rows(const std::string& name, int64_t cols, std::vector<float>& out) {
    const ModelTensor* tensor = file_.find_tensor(name);  // there: the config counted its rows
    WOK_TRY(found, from_.find(seen(name), cols, tensor->rows()));
    out.resize(static_cast<size_t>(cols * found->rows()));
    std::vector<uint8_t> buffer;
    for (int64_t r = 0; r < found->rows(); ++r) {
      found->format->dequantize(found->read_rows(r, 1, buffer), &out[r * cols], cols);
    }
    return Ok{};
  }
  Result<const ModelTensor*> table(const std::string& name, int64_t cols, int64_t rows) {
    return from_.find(seen(name), cols, rows);
  }

  Status check_all_seen() const {
    for (const ModelTensor& tensor : file_.tensors()) {
      if (seen_.contains(std::string(tensor.name))) continue;
      return unsupported(fmt::format("'{}' holds '{}', which wok's encoder does not read",
                                     file_.path(), tensor.name));
    }
    return Ok{};
  }

 private:
  const std::string& seen(const std::string& name) { return *seen_.insert(name).first; }

  const ModelFile& file_;
  Collector from_;
  std::set<std::string> seen_;
};

}  // namespace

Result<std::vector<MatrixPlace>> collect_encoder_weights(const ModelFile& file,
                                                         const EncoderConfig& c,
                                                         EncoderWeights& w) {
  std::vector<MatrixPlace> places;
  EncoderCollector from(file, places);
  const int64_t e = c.embedding, f = c.feed_forward;
  WOK_TRY(tokens, from.table("token_embd.weight", e, c.vocab));
  if (tokens->source != nullptr) {
    return unsupported(fmt::format(
        "'{}' has a quantized embedding, which wok does not look rows up in", file.path()));
  }
  w.tokens = tokens;
  WOK_RETURN_IF_ERROR(from.rows("position_embd.weight", e, w.positions));
  WOK_RETURN_IF_ERROR(from.rows("token_types.weight", e, w.types));
  WOK_RETURN_IF_ERROR(from.norm("token_embd_norm", e, w.embedding_norm));
  w.layers.resize(c.layers);
  for (int32_t i = 0; i < c.layers; ++i) {
    EncoderLayerWeights& layer = w.layers[i];
    const std::string b = fmt::format("blk.{}.", i);
    WOK_RETURN_IF_ERROR(from.linear(b + "attn_q", e, e, layer.q, layer.q_bias));
    WOK_RETURN_IF_ERROR(from.linear(b + "attn_k", e, e, layer.k, layer.k_bias));
    WOK_RETURN_IF_ERROR(from.linear(b + "attn_v", e, e, layer.v, layer.v_bias));
    WOK_RETURN_IF_ERROR(from.linear(b + "attn_output", e, e, layer.o, layer.o_bias));
    WOK_RETURN_IF_ERROR(from.norm(b + "attn_output_norm", e, layer.attention_norm));
    WOK_RETURN_IF_ERROR(from.linear(b + "ffn_up", e, f, layer.up, layer.up_bias));
    WOK_RETURN_IF_ERROR(from.linear(b + "ffn_down", f, e, layer.down, layer.down_bias));
    WOK_RETURN_IF_ERROR(from.norm(b + "layer_output_norm", e, layer.output_norm));
  }
  if (c.pooling == Pooling::kRank) {
    WOK_RETURN_IF_ERROR(from.linear("cls", e, e, w.pooler, w.pooler_bias));
    WOK_RETURN_IF_ERROR(from.vector("cls.output.weight", e, w.out));
    WOK_RETURN_IF_ERROR(from.vector("cls.output.bias", 1, w.out_bias));
  }
  WOK_RETURN_IF_ERROR(from.check_all_seen());
  return places;
}

}  // namespace wok
