// GET /metrics: Prometheus text format.
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest, std::shared_ptr<ResponseWriter> writer) {
  const ServedModel* served = context.model();
  ApiReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  const std::string& version = context.options().version;
  if (served != nullptr) {
    const EngineStats stats = served->stats();
    reply.body = context.metrics().serialize(&stats, served->id, version);
  } else {
    reply.body = context.metrics().serialize(nullptr, "", version);
  }
  writer->reply(std::move(reply));
}

}  // namespace

Endpoint metrics_endpoint() {
  return {.method = "GET", .path = "/metrics", .run_on = RunOn::kIoThread, .handle = handle};
}

}  // namespace wok
