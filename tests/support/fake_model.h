// A ServedModel of fakes.
#pragma once

#include <memory>
#include <utility>

#include "api/served_model.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fake_tokenizer.h"

namespace wok::test {

struct FakeModel {
  explicit FakeModel(FakeEngineOptions options = {}) {
    auto tokenizer = std::make_unique<FakeTokenizer>();
    options.vocab = tokenizer->vocab_size();
    if (options.end_id < 0) options.end_id = tokenizer->eos_id();
    served.id = "fake";
    served.created_unix_s = 1'700'000'000;
    served.tokenizer = std::move(tokenizer);
    served.chat_template = std::make_unique<FakeTemplate>();
    auto owned = std::make_unique<FakeEngine>(std::move(options));
    engine = owned.get();
    served.engine = std::move(owned);
  }

  ServedModel served;
  FakeEngine* engine = nullptr;
};

// A script for the fake engine: byte tokens of a text.
inline std::vector<int32_t> script_of(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

}  // namespace wok::test
