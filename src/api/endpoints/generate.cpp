#include "api/endpoints/generate.h"

#include <fmt/format.h>

#include "api/json_body.h"

namespace wok {

using nlohmann::json;

namespace {

// What the model is and where to send the request; "" when it does what is asked.
std::string wrong_task(const ServedModel& served, Task task) {
  const char* is = !served.embedder                   ? "generates text"
                   : served.embedder->model().ranks() ? "is a reranker"
                                                      : "makes embeddings";
  const char* use = !served.embedder                   ? "/v1/chat/completions or /v1/completions"
                    : served.embedder->model().ranks() ? "/v1/rerank"
                                                       : "/v1/embeddings";
  const Task does = !served.embedder                   ? Task::kGenerate
                    : served.embedder->model().ranks() ? Task::kRank
                                                       : Task::kEmbed;
  if (does == task) return "";
  return fmt::format("the model `{}` {}: it answers at {}, not here", served.id, is, use);
}

}  // namespace

ServedModel* model_or_reply(ApiContext& context, ResponseWriter& writer, Task task) {
  ServedModel* served = context.model();
  if (context.draining()) {
    writer.reply(error_reply(draining_error()));
    return nullptr;
  }
  if (served == nullptr) {
    writer.reply(error_reply(model_loading_error()));
    return nullptr;
  }
  if (std::string wrong = wrong_task(*served, task); !wrong.empty()) {
    writer.reply(
        error_reply({.message = std::move(wrong), .param = "model", .code = "model_not_capable"}));
    return nullptr;
  }
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
