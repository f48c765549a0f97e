// Bytes as a GGUF file: parsed, and all that is read of it before weights are packed. An input is
// taken as it stands (cut off: most have no data) and with zeros behind it for the tensors' data.
//
// The seeds are made here rather than kept as files: an input too short to be a file becomes one
// of a few small, valid headers before it is mutated.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "api/tokenizer_data.h"
#include "models/read_info.h"
#include "models/weights.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/edited_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace wok {
namespace {

using fuzz::demand;

constexpr size_t kDataBytes = 32 * 1024;

template <class T>
void check_error(const Result<T>& result, std::span<const uint8_t> input) {
  if (result.ok()) return;
  fuzz::check_message(result.error().message,
                      {reinterpret_cast<const char*>(input.data()), input.size()});
}

void check_weights(const ModelFile& file, std::span<const uint8_t> bytes) {
  const auto config = read_decoder_config(file);
  check_error(config, bytes);
  if (!config.ok()) return;
  DecoderWeights weights;
  const auto places = collect_weights(file, *config, weights);
  check_error(places, bytes);
  if (!places.ok()) return;
  for (const MatrixPlace& place : *places) {
    const ModelTensor& t = *place.tensor;
    demand(t.format != nullptr, "a matrix of unknown type");
    demand(static_cast<uint64_t>(t.format->row_bytes(t.shape[0]) * t.rows()) == t.data.size(),
           "a matrix of another size than its shape");
  }
  demand(static_cast<int32_t>(weights.layers.size()) == config->layers, "a layer is missing");
}

void check(std::span<const uint8_t> bytes) {
  const auto file = parse_gguf(bytes, "fuzz.gguf");
  check_error(file, bytes);
  if (!file.ok()) return;
  const std::string wrong = test::inconsistency(*file, bytes);
  demand(wrong.empty(), "inconsistent", wrong);
  check_weights(*file, bytes);
  check_error(read_model_info(*file), bytes);
  auto tokens = read_tokenizer_data(*file);
  check_error(tokens, bytes);
  if (tokens.ok()) check_error(Tokenizer::create(std::move(tokens).value()), bytes);
}

// The header of a model of one layer, with a tokenizer of a few tokens.
std::vector<uint8_t> seed(unsigned variant) {
  test::TinyShape shape;
  shape.architecture = std::array{"llama", "gemma3", "qwen2", "qwen3"}[variant / 4 % 4];
  shape.layers = 1;
  shape.embedding = shape.feed_forward = 32;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.vocab = 97;
  shape.type = variant % 4 < 2 ? "Q8_0" : "F32";
  test::EditedModel model(shape);
  auto& vocabulary = model.tensor("token_embd.weight");
  vocabulary.data.resize(vocabulary.data.size() / 97 * 8);
  vocabulary.info.shape[1] = 8;
  const bool bytes = variant % 3 == 0;
  model.text("tokenizer.ggml.model", bytes ? "llama" : "gpt2");
  model.text("tokenizer.ggml.pre", "smollm");
  model.texts("tokenizer.ggml.tokens",
              {"<s>", "</s>", "a", "b", "ab", "<0x0A>", "\xE2\x96\x81", "c"});
  model.wholes("tokenizer.ggml.token_type", {3, 3, 1, 1, 1, 6, 1, 1});
  if (bytes) {
    model.reals("tokenizer.ggml.scores", {0, 0, -1, -2, -3, 0, -4, -5});
  } else {
    model.texts("tokenizer.ggml.merges", {"a b"});
  }
  model.whole("tokenizer.ggml.bos_token_id", 0);
  model.whole("tokenizer.ggml.eos_token_id", 1);
  model.text("tokenizer.chat_template", "{{ messages[0].content }}");
  size_t data = 0;
  for (const auto& tensor : model.tensors) data += (tensor.data.size() + 31) / 32 * 32;
  auto header = model.bytes();
  header.resize(header.size() - data);
  return header;
}

}  // namespace
}  // namespace wok

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of exactly this size, so that a read beyond the end is seen.
  std::vector<uint8_t> bytes(data, data + size);
  wok::check(bytes);
  if (size < 24 || std::memcmp(data, "GGUF", 4) != 0) return 0;
  std::vector<uint8_t> with_data((size + 31) / 32 * 32 + wok::kDataBytes);
  std::memcpy(with_data.data(), data, size);
  wok::check(with_data);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned variant) {
  if (size < 24 || variant % 256 == 0) {
    const std::vector<uint8_t> header = wok::seed(variant / 256);
    if (header.size() <= max_size) {
      std::memcpy(data, header.data(), header.size());
      size = header.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
