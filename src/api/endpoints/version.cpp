// GET /version
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest, std::shared_ptr<ResponseWriter> writer) {
  reply_json(*writer, {{"version", context.options().version}});
}

}  // namespace

Endpoint version_endpoint() {
  return {.method = "GET",
          .path = "/version",
          .run_on = RunOn::kIoThread,
          .open = true,
          .handle = handle};
}

}  // namespace wok
