// GET /health: does the engine make progress? 503 when it has work but has not stepped for a while.
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest, std::shared_ptr<ResponseWriter> writer) {
  nlohmann::json body{{"status", "ok"}};
  ApiReply reply;
  if (const ServedModel* served = context.model()) {
    const EngineStats stats = served->stats();
    const int64_t now_ms = context.clock().unix_ms();
    body["model"] = served->id;
    body["running"] = stats.running;
    body["waiting"] = stats.waiting;
    body["steps"] = stats.steps;
    if (stats.last_step_unix_ms > 0) body["last_step_age_ms"] = now_ms - stats.last_step_unix_ms;
    const bool working = stats.running > 0;
    if (working && stats.last_step_unix_ms > 0 &&
        now_ms - stats.last_step_unix_ms > context.options().stall_ms) {
      body["status"] = "stalled";
      reply.status = 503;
    } else if (context.draining()) {
      body["status"] = "draining";
    }
  } else {
    body["status"] = "loading";
  }
  reply.body = body.dump();
  writer->reply(std::move(reply));
}

}  // namespace

Endpoint health_endpoint() {
  return {.method = "GET",
          .path = "/health",
          .run_on = RunOn::kIoThread,
          .open = true,
          .handle = handle};
}

}  // namespace wok
