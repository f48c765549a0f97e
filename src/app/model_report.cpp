#include "app/model_report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace wok::app {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr int kTemplateLines = 4;
constexpr size_t kTemplateColumns = 100;

std::string mib(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
}

// A file's text goes to a terminal: no control characters.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return out;
}

std::string first_lines(const std::string& text) {
  std::string out;
  size_t begin = 0;
  for (int line = 0; line < kTemplateLines && begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t shown = std::min(end - begin, kTemplateColumns);
    out += fmt::format("  | {}{}\n", printable(text.substr(begin, shown)),
                       shown < end - begin ? " …" : "");
    begin = end + 1;
  }
  if (begin < text.size()) out += "  | …\n";
  return out;
}

}  // namespace

std::string model_report(const ModelInfo& info, int32_t context_tokens) {
  const int32_t tokens = context_tokens > 0 ? context_tokens : info.context_tokens;
  const uint64_t kv_bytes = info.kv_bytes_per_token * static_cast<uint64_t>(std::max(tokens, 0));
  std::string out;
  const auto line = [&](const char* key, const std::string& value) {
    fmt::format_to(std::back_inserter(out), "{:<15} {}\n", key, value);
  };
  line("name", printable(info.name));
  line("architecture", printable(info.architecture));
  line("parameters", fmt::format("{:.1f} M", static_cast<double>(info.parameters) / 1e6));
  line("size", mib(info.file_bytes));
  line("layers", fmt::format("{}", info.layers));
  line("heads", fmt::format("{} (key/value: {}), of {}", info.heads, info.kv_heads, info.head_dim));
  line("embedding", fmt::format("{}, feed-forward {}", info.embedding, info.feed_forward));
  if (info.experts > 0) {
    line("experts", fmt::format("{}, of which a token uses {}, feed-forward {}", info.experts,
                                info.experts_used, info.expert_feed_forward));
  }
  line("vocabulary", fmt::format("{}", info.vocab));
  line("context", fmt::format("{} tokens", info.context_tokens));
  std::string types;
  for (const auto& [type, count] : info.tensor_types) {
    types += fmt::format("{}{} × {}", types.empty() ? "" : ", ", count, type);
  }
  line("tensors", types);
  if (!info.pooling.empty()) {
    const bool ranks = info.pooling == "rank";
    line("makes", ranks
                      ? "scores of pairs of texts (/v1/rerank)"
                      : fmt::format("vectors of {} (/v1/embeddings), pooling {}{}", info.embedding,
                                    info.pooling, info.normalize ? ", of length 1" : ""));
    line("memory", fmt::format("{} of weights", mib(info.file_bytes)));
    return out;
  }
  line("memory",
       fmt::format("{} = weights {} + KV {} for one sequence of {} tokens",
                   mib(info.file_bytes + kv_bytes), mib(info.file_bytes), mib(kv_bytes), tokens));
  line("chat template", info.chat_template.empty() ? "no" : "yes");
  return out + first_lines(info.chat_template);
}

}  // namespace wok::app
