// POST /tokenize: {"prompt": text} or {"messages": […]} → {"count", "max_model_len", "tokens"}
#include "api/chat_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

using nlohmann::json;

struct TokenizeRequest {
  std::string text;
  bool add_special = true;
  bool parse_special = true;
  bool with_strings = false;
};

std::optional<ApiError> read(const ApiContext& context, const ServedModel& served, const json& body,
                             TokenizeRequest& out) {
  Fields fields(body);
  if (auto error = check_model_name(fields, served)) return error;
  fields.boolean("add_special_tokens", out.add_special);
  fields.boolean("parse_special", out.parse_special);
  fields.boolean("return_token_strs", out.with_strings);
  const bool prompt = fields.has("prompt");
  if (prompt == fields.has("messages")) {
    fields.fail("prompt", "give `prompt` (a string) or `messages`, one of the two",
                "missing_parameter");
  } else if (prompt) {
    fields.string("prompt", std::string::npos, out.text);
  } else {
    out.text = read_chat_prompt(fields, served, context.clock().unix_ms() / 1000);
  }
  return fields.finish();
}

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  const ServedModel* served = context.model();
  if (served == nullptr) return writer->reply(error_reply(model_loading_error()));
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  TokenizeRequest parsed;
  if (auto error = read(context, *served, *body, parsed)) {
    return writer->reply(error_reply(*error));
  }
  auto ids = served->tokenizer->encode(parsed.text, parsed.add_special, parsed.parse_special);
  if (!ids.ok()) return writer->reply(error_reply(to_api_error(ids.error())));
  json reply{{"count", ids->size()}, {"max_model_len", served->context_tokens()}, {"tokens", *ids}};
  if (parsed.with_strings) {
    json& strings = reply["token_strs"] = json::array();
    for (const int32_t id : *ids)
      strings.push_back(std::string(served->tokenizer->piece(id, true)));
  }
  reply_json(*writer, reply);
}

}  // namespace

Endpoint tokenize_endpoint() {
  return {.method = "POST", .path = "/tokenize", .handle = handle};
}

}  // namespace wok
