// GET /v1/models/{id}; an id may hold slashes.
#include <fmt/format.h>

#include "api/api_error.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"
#include "api/endpoints/model_json.h"

namespace wok {
namespace {

constexpr std::string_view kPath = "/v1/models/*";

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  const ServedModel* served = context.model();
  if (served == nullptr) return writer->reply(error_reply(model_loading_error()));
  const std::string id = request.path.substr(kPath.size() - 1);
  if (id != served->id) {
    return writer->reply(
        error_reply({.status = 404,
                     .message = fmt::format("model `{}` is not served here; there is `{}`",
                                            id.substr(0, 200), served->id),
                     .param = "model",
                     .code = "model_not_found"}));
  }
  reply_json(*writer, model_json(*served));
}

}  // namespace

Endpoint model_endpoint() {
  return {.method = "GET", .path = kPath, .run_on = RunOn::kIoThread, .handle = handle};
}

}  // namespace wok
