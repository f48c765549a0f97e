// GET /v1/models
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"
#include "api/endpoints/model_json.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest, std::shared_ptr<ResponseWriter> writer) {
  nlohmann::json data = nlohmann::json::array();
  if (const ServedModel* served = context.model()) data.push_back(model_json(*served));
  reply_json(*writer, {{"object", "list"}, {"data", std::move(data)}});
}

}  // namespace

Endpoint models_endpoint() {
  return {.method = "GET", .path = "/v1/models", .run_on = RunOn::kIoThread, .handle = handle};
}

}  // namespace wok
