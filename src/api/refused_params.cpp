#include "api/refused_params.h"

#include <fmt/format.h>

namespace wok {
namespace {

using nlohmann::json;

// Besides null, the value that asks for nothing and so may be given.
enum class Harmless { kNone, kFalse, kTrue, kEmpty, kNoTools, kPlainText, kTextOnly, kOne, kZero };

struct Refused {
  std::string_view name;
  Harmless harmless;
};

constexpr Refused kRefused[] = {
    {"tools", Harmless::kEmpty},
    {"tool_choice", Harmless::kNoTools},
    {"functions", Harmless::kEmpty},
    {"function_call", Harmless::kNoTools},
    {"response_format", Harmless::kPlainText},
    {"structured_outputs", Harmless::kNone},
    {"guided_json", Harmless::kNone},
    {"guided_regex", Harmless::kNone},
    {"guided_choice", Harmless::kNone},
    {"guided_grammar", Harmless::kNone},
    {"guided_decoding_backend", Harmless::kNone},
    {"guided_whitespace_pattern", Harmless::kNone},
    {"suffix", Harmless::kEmpty},
    {"audio", Harmless::kNone},
    {"modalities", Harmless::kTextOnly},
    {"prediction", Harmless::kNone},
    {"reasoning_effort", Harmless::kNone},
    {"verbosity", Harmless::kNone},
    {"web_search_options", Harmless::kNone},
    {"store", Harmless::kFalse},
    {"documents", Harmless::kEmpty},
    {"chat_template", Harmless::kNone},
    {"use_beam_search", Harmless::kFalse},
    {"length_penalty", Harmless::kOne},
    {"early_stopping", Harmless::kFalse},
    {"prompt_logprobs", Harmless::kNone},
    {"truncate_prompt_tokens", Harmless::kNone},
    {"logits_processors", Harmless::kEmpty},
    {"allowed_token_ids", Harmless::kNone},
    {"bad_words", Harmless::kEmpty},
    {"mm_processor_kwargs", Harmless::kEmpty},
    {"kv_transfer_params", Harmless::kNone},
    {"thinking_token_budget", Harmless::kNone},
    {"top_a", Harmless::kZero},
    {"spaces_between_special_tokens", Harmless::kTrue},
};

// Clients send these of their own accord; they ask nothing of the text that is generated.
constexpr std::string_view kAccepted[] = {"user",
                                          "metadata",
                                          "service_tier",
                                          "request_id",
                                          "safety_identifier",
                                          "prompt_cache_key",
                                          "prompt_cache_retention"};

bool is_harmless(const json& value, Harmless harmless) {
  switch (harmless) {
    case Harmless::kNone:
      return false;
    case Harmless::kFalse:
      return value == false;
    case Harmless::kTrue:
      return value == true;
    case Harmless::kEmpty:
      // json::empty() asks whether an array or object has elements; a string always has one.
      return value.is_string() ? value.get_ref<const std::string&>().empty()
                               : value.is_structured() && value.empty();
    case Harmless::kNoTools:
      return value == "none" || value == "auto";
    case Harmless::kPlainText:
      return value == json{{"type", "text"}};
    case Harmless::kTextOnly:
      return value == json::array({"text"});
    case Harmless::kOne:
      return value == 1;
    case Harmless::kZero:
      return value == 0;
  }
  return false;
}

}  // namespace

void check_refused_params(Fields& fields) {
  for (const auto& [name, harmless] : kRefused) {
    const json* value = fields.get(name);
    if (value == nullptr || is_harmless(*value, harmless)) continue;
    fields.fail(name,
                fmt::format("`{}` is not supported by this version of wok (found {}); leave it out",
                            name, describe(*value)),
                "unsupported_parameter");
  }
  for (const std::string_view name : kAccepted) fields.accept(name);
  bool parallel_tool_calls = false;  // says nothing when there are no tools
  fields.boolean("parallel_tool_calls", parallel_tool_calls);
}

}  // namespace wok
