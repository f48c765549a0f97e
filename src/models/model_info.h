// What a model file says about itself, for `wok show`, the API and the advisor. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wok {

struct ModelInfo {
  std::string architecture;  // "llama", "gemma3", "qwen3"
  std::string name;          // general.name, or the file's name
  int32_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int32_t embedding = 0, feed_forward = 0, vocab = 0;
  int32_t experts = 0, experts_used = 0, expert_feed_forward = 0;  // 0: no mixture of experts
  int32_t context_tokens = 0;                                      // trained context
  uint64_t parameters = 0;
  uint64_t file_bytes = 0;
  std::vector<std::pair<std::string, int>> tensor_types;  // "Q4_1" -> count, most frequent first
  std::string chat_template;                              // as in the file, "" when there is none
  std::string pooling;  // of a model that makes vectors ("mean") or scores ("rank"); "" for others
  bool normalize = false;  // its vectors have the length 1
  uint64_t kv_bytes_per_token = 0;
};

}  // namespace wok
