#include "api/endpoints/generate.h"

#include <fmt/format.h>

#include "api/json_body.h"

namespace wok {

using nlohmann::json;

ServedModel* model_or_reply(ApiContext& context, ResponseWriter& writer) {
  ServedModel* served = context.model();
  if (context.draining()) {
    writer.reply(error_reply(draining_error()));
    return nullptr;
  }
  if (served == nullptr) writer.reply(error_reply(model_loading_error()));
  return served;
}

std::optional<json> body_or_reply(const ApiRequest& request, ResponseWriter& writer) {
  auto parsed = parse_json_body(request.body);
  if (auto* error = std::get_if<ApiError>(&parsed)) {
    writer.reply(error_reply(*error));
    return std::nullopt;
  }
  return std::get<json>(std::move(parsed));
}

ReplyHead make_head(const ApiContext& context, const ServedModel& served, bool usage_in_chunks) {
  ReplyHead head;
  head.id = fmt::format("{:016x}", context.clock().random());
  head.model = served.id;
  head.fingerprint = "wok-" + context.options().version;
  head.created_unix_s = context.clock().unix_ms() / 1000;
  head.usage_in_chunks = usage_in_chunks;
  return head;
}

void reply_json(ResponseWriter& writer, const json& body) {
  ApiReply reply;
  reply.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  writer.reply(std::move(reply));
}

}  // namespace wok
