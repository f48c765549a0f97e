// Renders a model's own chat template (Jinja, by the Rust crate `minijinja`), with the functions
// and Python string methods templates in the wild use: strftime_now, raise_exception, tojson,
// .strip()/.split()/.startswith()/.items() …, trim_blocks and lstrip_blocks as transformers sets.
// Immutable after create(); may be used from many threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace wok {

struct ChatTemplateInput {
  nlohmann::json messages;  // array of {role, content, ...}
  nlohmann::json tools;     // null or array
  nlohmann::json kwargs;    // null or object: chat_template_kwargs
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the answer continues the last message's text
  int64_t now_unix_s = 0;               // what strftime_now sees (UTC)
};

class ChatTemplate {
 public:
  // bos/eos: the texts of the model's special tokens, visible as bos_token / eos_token.
  // Errors: kInvalid with the template's line for a syntax error.
  static Result<std::unique_ptr<ChatTemplate>> create(const std::string& source,
                                                      const std::string& bos,
                                                      const std::string& eos);
  virtual ~ChatTemplate() = default;

  // Errors: kInvalid with the template's line; what raise_exception() said comes through verbatim.
  virtual Result<std::string> render(const ChatTemplateInput& input) const = 0;
};

// What wok uses for a file that carries no template. With ChatML's tokens in the vocabulary:
// ChatML. Otherwise the file is a base model, which was never taught turns: a transcript of
// questions and answers with two examples, whose `stops` end the answer where the next question
// would begin.
struct DefaultTemplate {
  std::string source;
  std::vector<std::string> stops;
};
DefaultTemplate default_chat_template(bool has_chatml_tokens);

}  // namespace wok
