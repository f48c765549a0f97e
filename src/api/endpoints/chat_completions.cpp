// POST /v1/chat/completions
#include "api/chat_format.h"
#include "api/chat_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  ServedModel* served = model_or_reply(context, *writer);
  if (served == nullptr) return;
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  auto parsed = read_chat_request(context, *served, *body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    return writer->reply(error_reply(*error));
  }
  auto& chat = std::get<ChatRequest>(parsed);
  chat.params.stop.insert(chat.params.stop.end(), served->chat_stops.begin(),
                          served->chat_stops.end());
  GenerationSpec spec;
  spec.format =
      std::make_unique<ChatFormat>(make_head(context, *served, chat.params.include_usage));
  spec.params = std::move(chat.params);
  spec.prompts.push_back(std::move(chat.prompt));
  spec.arrived_ns = request.arrived_ns;
  Generation::start(context, *served, std::move(spec), std::move(writer));
}

}  // namespace

Endpoint chat_completions_endpoint() {
  return {.method = "POST", .path = "/v1/chat/completions", .handle = handle};
}

}  // namespace wok
