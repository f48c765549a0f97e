// POST /v1/completions
#include "api/completion_format.h"
#include "api/completion_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  ServedModel* served = model_or_reply(context, *writer);
  if (served == nullptr) return;
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  auto parsed = read_completion_request(context, *served, *body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    return writer->reply(error_reply(*error));
  }
  auto& completion = std::get<CompletionRequest>(parsed);
  GenerationSpec spec;
  spec.format = std::make_unique<CompletionFormat>(
      make_head(context, *served, completion.params.include_usage));
  spec.params = std::move(completion.params);
  spec.prompts = std::move(completion.prompts);
  spec.echo = std::move(completion.echo);
  spec.arrived_ns = request.arrived_ns;
  Generation::start(context, *served, std::move(spec), std::move(writer));
}

}  // namespace

Endpoint completions_endpoint() {
  return {.method = "POST", .path = "/v1/completions", .handle = handle};
}

}  // namespace wok
