#include "models/encoder_config.h"

#include <fmt/format.h>

#include "formats/hf_encoder.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

constexpr const char* kArchitecture = "bert";

Result<int32_t> count(const ModelFile& file, const std::string& name, int64_t low, int64_t high) {
  const std::string key = std::string(kArchitecture) + "." + name;
  WOK_TRY(found, file.get_int(key));
  if (!found) {
    return invalid(
        fmt::format("'{}' has no key '{}'; the file is no complete model", file.path(), key));
  }
  if (*found < low || *found > high) {
    return invalid(
        fmt::format("'{}': {} is {}, expected {} to {}", file.path(), key, *found, low, high));
  }
  return static_cast<int32_t>(*found);
}

// The rows of an embedding, which no key states.
Result<int32_t> rows_of(const ModelFile& file, const char* name, int64_t most) {
  const ModelTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) {
    return invalid(
        fmt::format("'{}' has no tensor '{}'; the file is no complete model", file.path(), name));
  }
  if (tensor->rows() < 1 || tensor->rows() > most) {
    return invalid(fmt::format("'{}': tensor '{}' has {} rows", file.path(), name, tensor->rows()));
  }
  return static_cast<int32_t>(tensor->rows());
}

}  // namespace

const char* pooling_name(Pooling pooling) {
  constexpr const char* kNames[] = {"mean", "cls", "last", "rank"};
  return kNames[static_cast<size_t>(pooling)];
}

Result<std::optional<Pooling>> read_pooling(const ModelFile& file,
                                            const std::string& architecture) {
  const std::string key = architecture + ".pooling_type";
  WOK_TRY(found, file.get_int(key));
  switch (static_cast<PoolingKey>(found.value_or(0))) {
    case PoolingKey::kNone:
      return std::optional<Pooling>();
    case PoolingKey::kMean:
      return std::optional(Pooling::kMean);
    case PoolingKey::kCls:
      return std::optional(Pooling::kCls);
    case PoolingKey::kLast:
      return std::optional(Pooling::kLast);
    case PoolingKey::kRank:
      return std::optional(Pooling::kRank);
  }
  return unsupported(
      fmt::format("'{}': {} is {}; wok knows 1 (mean), 2 (cls), 3 (last) and 4 (rank)", file.path(),
                  key, *found));
}

Result<bool> read_normalize(const ModelFile& file) {
  WOK_TRY(said, file.get_int(kNormalizeKey));
  return said ? *said != 0 : file.is_gguf();
}

bool is_encoder(const ModelFile& file) {
  const Result<std::optional<std::string_view>> name = file.get_string("general.architecture");
  return name.ok() && name.value() == std::optional<std::string_view>(kArchitecture);
}

Result<EncoderConfig> read_encoder_config(const ModelFile& file) {
  EncoderConfig c;
  WOK_TRY(layers, count(file, "block_count", 1, 1024));
  WOK_TRY(embedding, count(file, "embedding_length", 16, 1 << 17));
  WOK_TRY(feed_forward, count(file, "feed_forward_length", 16, 1 << 20));
  WOK_TRY(heads, count(file, "attention.head_count", 1, 1024));
  WOK_TRY(context, count(file, "context_length", 4, 1 << 20));
  WOK_TRY(vocab, rows_of(file, "token_embd.weight", 1 << 22));
  WOK_TRY(positions, rows_of(file, "position_embd.weight", 1 << 20));
  WOK_TRY(types, rows_of(file, "token_types.weight", 16));
  if (context > positions) {
    return invalid(fmt::format("'{}': a context of {} tokens, and embeddings of {} positions",
                               file.path(), context, positions));
  }
  if (embedding % heads != 0 || embedding / heads % 16 != 0 || embedding / heads > kMaxHeadDim) {
    return unsupported(
        fmt::format("'{}': {} heads of an embedding of {}; wok runs heads of multiples of 16",
                    file.path(), heads, embedding));
  }
  WOK_TRY(causal, file.get_bool(std::string(kArchitecture) + ".attention.causal"));
  if (causal.value_or(false)) {
    return unsupported(
        fmt::format("'{}': an encoder with causal attention, which wok does not run", file.path()));
  }
  WOK_TRY(epsilon, file.get_float(std::string(kArchitecture) + ".attention.layer_norm_epsilon"));
  if (!(epsilon.value_or(1e-12) >= 0 && epsilon.value_or(1e-12) <= 1)) {
    return invalid(fmt::format("'{}': attention.layer_norm_epsilon is {}", file.path(), *epsilon));
  }
  WOK_TRY(pooling, read_pooling(file, kArchitecture));
  if (!pooling) {
    return unsupported(
        fmt::format("'{}' does not say how a text's vector is made ({}.pooling_type); convert it "
                    "again with its modules.json",
                    file.path(), kArchitecture));
  }
  WOK_TRY(normalize, read_normalize(file));
  c.layers = layers;
  c.embedding = embedding;
  c.feed_forward = feed_forward;
  c.vocab = vocab;
  c.heads = heads;
  c.head_dim = embedding / heads;
  c.context_tokens = context;
  c.token_types = types;
  c.norm_epsilon = static_cast<float>(epsilon.value_or(1e-12));
  c.pooling = *pooling;
  c.normalize = normalize;
  return c;
}

}  // namespace wok
