#include "api/api_context.h"

#include <algorithm>
#include <utility>

namespace wok {

ApiContext::ApiContext(ApiOptions options, Clock clock)
    : options_(std::move(options)), clock_(std::move(clock)), text_pool_(options_.text_threads) {}

void ApiContext::set_model(ServedModel* model) {
  size_t longest = 1;
  const Tokenizer& tokenizer = *model->tokenizer;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest = std::max(longest, tokenizer.piece(id, true).size());
  }
  longest_piece_.store(longest, std::memory_order_relaxed);
  model_.store(model, std::memory_order_release);
  if (draining()) model->drain();
}

void ApiContext::drain() {
  draining_.store(true, std::memory_order_release);
  if (ServedModel* served = model()) served->drain();
}

}  // namespace wok
