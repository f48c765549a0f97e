// GET /ready: 200 when new requests are taken; 503 while the model loads or the server drains.
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest, std::shared_ptr<ResponseWriter> writer) {
  const bool loaded = context.model() != nullptr;
  const bool ready = loaded && !context.draining();
  ApiReply reply;
  reply.status = ready ? 200 : 503;
  reply.body = nlohmann::json{{"ready", ready},
                              {"status", ready    ? "ready"
                                         : loaded ? "draining"
                                                  : "loading"}}
                   .dump();
  writer->reply(std::move(reply));
}

}  // namespace

Endpoint ready_endpoint() {
  return {.method = "GET",
          .path = "/ready",
          .run_on = RunOn::kIoThread,
          .open = true,
          .handle = handle};
}

}  // namespace wok
