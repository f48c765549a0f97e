#include <algorithm>
#include <map>

#include "formats/model_file.h"
#include "kv/page_memory.h"
#include "models/architecture.h"
#include "models/encoder_config.h"
#include "models/read_info.h"

namespace wok {

namespace {

Status read_decoder(const ModelFile& file, ModelInfo& info) {
  WOK_TRY(config, read_decoder_config(file));
  info.layers = config.layers;
  info.heads = config.heads;
  info.kv_heads = config.kv_heads;
  info.head_dim = config.head_dim;
  info.embedding = config.embedding;
  info.feed_forward = config.feed_forward;
  info.experts = config.experts.count;
  info.experts_used = config.experts.used;
  info.expert_feed_forward = config.experts.feed_forward;
  info.vocab = config.vocab;
  info.context_tokens = config.context_tokens;
  const KvShape kv{config.layers, config.kv_heads, config.head_dim, &kKvFormat_f16};
  info.kv_bytes_per_token = kv.page_bytes() / kPageTokens;
  return Ok{};
}

Status read_encoder(const ModelFile& file, ModelInfo& info) {
  WOK_TRY(config, read_encoder_config(file));
  info.layers = config.layers;
  info.heads = info.kv_heads = config.heads;
  info.head_dim = config.head_dim;
  info.embedding = config.embedding;
  info.feed_forward = config.feed_forward;
  info.vocab = config.vocab;
  info.context_tokens = config.context_tokens;
  info.pooling = pooling_name(config.pooling);
  info.normalize = config.normalize;
  return Ok{};
}

}  // namespace

Result<ModelInfo> read_model_info(const ModelFile& file) {
  ModelInfo info;
  WOK_RETURN_IF_ERROR(is_encoder(file) ? read_encoder(file, info) : read_decoder(file, info));
  WOK_TRY(architecture, file.get_string("general.architecture"));
  WOK_TRY(name, file.get_string("general.name"));
  WOK_TRY(chat_template, file.get_string("tokenizer.chat_template"));
  info.architecture = std::string(architecture.value_or(""));
  info.name = std::string(name.value_or(""));
  info.chat_template = std::string(chat_template.value_or(""));
  info.file_bytes = file.file_bytes();
  std::map<std::string, int> types;
  for (const ModelTensor& tensor : file.tensors()) {
    info.parameters +=
        static_cast<uint64_t>(tensor.shape[0]) * static_cast<uint64_t>(tensor.rows());
    ++types[tensor.format != nullptr ? tensor.format->name : gguf_type_name(tensor.type)];
  }
  info.tensor_types.assign(types.begin(), types.end());
  std::stable_sort(info.tensor_types.begin(), info.tensor_types.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return info;
}

Result<ModelInfo> read_model_info(const std::string& path) {
  WOK_TRY(file, ModelFile::open(path));
  return read_model_info(file);
}

}  // namespace wok
