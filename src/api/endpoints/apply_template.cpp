// POST /apply-template: {"messages": […]} → {"prompt": text}, exactly what a chat would feed.
#include "api/chat_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"
#include "api/refused_params.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  const ServedModel* served = context.model();
  if (served == nullptr) return writer->reply(error_reply(model_loading_error()));
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  Fields fields(*body);
  if (auto error = check_model_name(fields, *served)) return writer->reply(error_reply(*error));
  check_refused_params(fields);
  const std::string text = read_chat_prompt(fields, *served, context.clock().unix_ms() / 1000);
  if (auto error = fields.finish()) return writer->reply(error_reply(*error));
  reply_json(*writer, {{"prompt", text}});
}

}  // namespace

Endpoint apply_template_endpoint() {
  return {.method = "POST", .path = "/apply-template", .handle = handle};
}

}  // namespace wok
