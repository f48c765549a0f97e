#include "api/completion_request.h"

#include <fmt/format.h>

namespace wok {
namespace {

using nlohmann::json;

class PromptReader {
 public:
  PromptReader(const ApiContext& context, const ServedModel& served, bool add_special)
      : context_(context), served_(served), add_special_(add_special) {}

  // The four forms: "text", ["text", …], [1, 2, …], [[1, 2, …], …].
  void read(Fields& fields, CompletionRequest& request) {
    const json* prompt = fields.get("prompt");
    if (prompt == nullptr) {
      fields.fail("prompt", "`prompt` is missing", "missing_parameter");
      return;
    }
    const bool many = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    const auto most = static_cast<size_t>(context_.options().max_choices / request.params.n);
    if (!many) return read_one(fields, *prompt, request);
    if (prompt->size() > most) {
      fields.fail_value("prompt",
                        fmt::format("at most {} prompts ({} choices a request, n = {})", most,
                                    context_.options().max_choices, request.params.n),
                        *prompt);
      return;
    }
    for (const json& one : *prompt) {
      read_one(fields, one, request);
      if (fields.error()) return;
    }
  }

 private:
  void read_one(Fields& fields, const json& value, CompletionRequest& request) {
    if (value.is_string()) return read_text(fields, value.get_ref<const std::string&>(), request);
    const int32_t vocab = served_.tokenizer->vocab_size();
    if (!value.is_array()) {
      fields.fail_value("prompt", "a string, an array of token ids, or an array of those", value);
      return;
    }
    std::vector<int32_t> ids;
    ids.reserve(value.size());
    for (const json& id : value) {
      if (!id.is_number_integer() || id < 0 || id >= vocab) {
        fields.fail_value("prompt", fmt::format("of token ids from 0 to {}", vocab - 1), id);
        return;
      }
      ids.push_back(id.get<int32_t>());
    }
    add(fields, std::move(ids), request);
  }

  void read_text(Fields& fields, const std::string& text, CompletionRequest& request) {
    if (auto error = check_text_length(text.size(), context_.longest_piece(),
                                       served_.context_tokens(), "prompt")) {
      fields.fail("prompt", error->message, error->code);
      return;
    }
    auto ids = served_.tokenizer->encode(text, add_special_, true);
    if (!ids.ok()) {
      fields.fail("prompt", ids.error().message);
      return;
    }
    add(fields, std::move(ids).value(), request);
  }

  void add(Fields& fields, std::vector<int32_t> ids, CompletionRequest& request) {
    if (ids.empty()) {
      fields.fail("prompt", "`prompt` is empty: the model needs at least one token to go on from");
      return;
    }
    request.prompts.push_back(std::move(ids));
  }

  const ApiContext& context_;
  const ServedModel& served_;
  const bool add_special_;
};

void read_completion_logprobs(Fields& fields, bool echo, SamplingParams& sampling) {
  const json* logprobs = fields.get("logprobs");
  if (logprobs == nullptr || *logprobs == false) return;
  fields.integer("logprobs", 0, kMaxTopLogprobs, sampling.top_logprobs);
  if (echo) {
    fields.fail("logprobs",
                "`logprobs` together with `echo` (of the prompt's tokens) is not "
                "supported by this version of wok",
                "unsupported_parameter");
  }
}

}  // namespace

std::variant<CompletionRequest, ApiError> read_completion_request(const ApiContext& context,
                                                                  const ServedModel& served,
                                                                  const json& body) {
  CompletionRequest request;
  Fields fields(body);
  if (auto error = check_model_name(fields, served)) return *std::move(error);
  read_generate_params(fields, served, context.clock().random(), request.params);
  int32_t max_tokens = kCompletionDefaultTokens;
  fields.integer("max_tokens", 1, std::numeric_limits<int32_t>::max(), max_tokens);
  request.params.max_tokens = max_tokens;
  bool echo = false;
  fields.boolean("echo", echo);
  read_completion_logprobs(fields, echo, request.params.sampling);
  if (!fields.error()) {
    PromptReader(context, served, request.params.add_special_tokens).read(fields, request);
  }
  if (auto error = fields.finish()) return *std::move(error);
  if (echo) {
    for (const auto& prompt : request.prompts) {
      request.echo.push_back(served.tokenizer->decode(prompt, request.params.show_special));
    }
  }
  return request;
}

}  // namespace wok
