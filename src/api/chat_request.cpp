#include "api/chat_request.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace wok {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
constexpr size_t kMaxMessages = 100'000;

// A string, or an array of text parts that are put together as they stand.
json read_content(Fields& message, const std::string& where) {
  const json* content = message.get("content");
  if (content == nullptr) return nullptr;
  if (content->is_string()) return *content;
  if (!content->is_array()) {
    message.fail_value("content", "a string or an array of text parts", *content);
    return nullptr;
  }
  std::string text;
  for (const json& part : *content) {
    if (part.is_string()) {
      text += part.get_ref<const std::string&>();
      continue;
    }
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      message.fail_value("content", "an array of objects with a `type`", part);
      return nullptr;
    }
    const json& type = part["type"];
    if (type != "text") {
      message.fail("content",
                   fmt::format("{}content has a part of type {}; this model reads only \"text\"",
                               where, describe(type)),
                   "unsupported_content");
      return nullptr;
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      message.fail("content", where + "content has a text part without a string `text`");
      return nullptr;
    }
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

std::optional<ApiError> read_message(const json& value, const std::string& where, json& out) {
  if (!value.is_object()) {
    return ApiError{
        .message = fmt::format("`{}` must be an object, found {}", where, describe(value)),
        .param = where};
  }
  Fields message(value, where + ".");
  std::string role;
  message.string("role", 64, role);
  if (!message.error() && std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    message.fail_value("role", "system, developer, user, assistant or tool", json(role));
  }
  // OpenAI renamed "system" to "developer"; the templates of open models know the first.
  out["role"] = role == "developer" ? "system" : role;
  out["content"] = read_content(message, where + ".");
  for (const char* name : {"name", "tool_calls", "tool_call_id", "reasoning_content"}) {
    if (const json* member = message.get(name)) out[name] = *member;
  }
  // Replies of OpenAI's clients, sent back as history, carry these, empty.
  for (const char* name : {"refusal", "annotations", "audio", "function_call"}) {
    const json* member = message.get(name);
    if (member != nullptr && !member->empty()) {
      message.fail(name, fmt::format("`{}.{}` is not supported", where, name),
                   "unsupported_parameter");
    }
  }
  if (out["content"].is_null() && !out.contains("tool_calls")) {
    message.fail("content", fmt::format("`{}.content` is missing", where));
  }
  if (out["content"].is_null()) out["content"] = "";
  return message.finish();
}

json read_messages(Fields& fields) {
  const json* messages = fields.get("messages");
  if (messages == nullptr) {
    fields.fail("messages", "`messages` is missing; it is an array of {role, content}",
                "missing_parameter");
    return {};
  }
  if (!messages->is_array() || messages->empty() || messages->size() > kMaxMessages) {
    fields.fail_value("messages", fmt::format("an array of 1 to {} messages", kMaxMessages),
                      *messages);
    return {};
  }
  json out = json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    json message = json::object();
    if (auto error = read_message((*messages)[i], fmt::format("messages[{}]", i), message)) {
      fields.fail(error->param, error->message, error->code);
      return {};
    }
    out.push_back(std::move(message));
  }
  return out;
}

// logprobs: true with top_logprobs 0 to 20.
void read_chat_logprobs(Fields& fields, SamplingParams& sampling) {
  bool logprobs = false;
  fields.boolean("logprobs", logprobs);
  int32_t top = 0;
  fields.integer("top_logprobs", 0, kMaxTopLogprobs, top);
  if (top > 0 && !logprobs) {
    fields.fail("top_logprobs", "`top_logprobs` needs `logprobs`: true");
  }
  if (logprobs) sampling.top_logprobs = top;
}

void read_chat_limits(Fields& fields, GenerateParams& params) {
  int32_t limit = 0;
  int32_t old_name = 0;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  fields.integer("max_completion_tokens", 1, kMost, limit);
  fields.integer("max_tokens", 1, kMost, old_name);
  if (limit > 0 && old_name > 0 && limit != old_name) {
    fields.fail("max_tokens", "`max_tokens` and `max_completion_tokens` differ; give one of them");
  }
  if (limit > 0 || old_name > 0) params.max_tokens = std::max(limit, old_name);
}

}  // namespace

std::string read_chat_prompt(Fields& fields, const ServedModel& served, int64_t now_unix_s) {
  ChatTemplateInput input;
  input.now_unix_s = now_unix_s;
  input.messages = read_messages(fields);
  fields.boolean("continue_final_message", input.continue_final_message);
  if (fields.has("add_generation_prompt")) {
    fields.boolean("add_generation_prompt", input.add_generation_prompt);
    if (input.add_generation_prompt && input.continue_final_message) {
      fields.fail("continue_final_message",
                  "`continue_final_message` and `add_generation_prompt` exclude each other");
    }
  } else {
    input.add_generation_prompt = !input.continue_final_message;
  }
  if (const json* kwargs = fields.get("chat_template_kwargs")) {
    if (!kwargs->is_object()) fields.fail_value("chat_template_kwargs", "an object", *kwargs);
    input.kwargs = *kwargs;
  }
  if (served.chat_template == nullptr) {
    fields.fail("messages",
                fmt::format("model `{}` carries no chat template, and wok knows none for its "
                            "architecture; use /v1/completions",
                            served.id),
                "no_chat_template");
  }
  if (fields.error()) return "";
  auto text = served.chat_template->render(input);
  if (!text.ok()) {
    fields.fail("messages", "the chat template refused: " + text.error().message,
                "chat_template_error");
    return "";
  }
  return std::move(text).value();
}

std::variant<ChatRequest, ApiError> read_chat_request(const ApiContext& context,
                                                      const ServedModel& served, const json& body) {
  ChatRequest request;
  Fields fields(body);
  if (auto error = check_model_name(fields, served)) return *std::move(error);
  read_generate_params(fields, served, context.clock().random(), request.params);
  read_chat_logprobs(fields, request.params.sampling);
  read_chat_limits(fields, request.params);
  bool echo = false;
  fields.boolean("echo", echo);
  if (echo) {
    fields.fail("echo", "`echo` is not supported for chats", "unsupported_parameter");
  }
  const std::string text = read_chat_prompt(fields, served, context.clock().unix_ms() / 1000);
  if (auto error = fields.finish()) return *std::move(error);

  if (auto error = check_text_length(text.size(), context.longest_piece(), served.context_tokens(),
                                     "messages")) {
    return *std::move(error);
  }
  auto prompt = served.tokenizer->encode(text, request.params.add_special_tokens, true);
  if (!prompt.ok()) return to_api_error(prompt.error());
  request.prompt = std::move(prompt).value();
  return request;
}

}  // namespace wok
