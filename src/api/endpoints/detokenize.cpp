// POST /detokenize: {"tokens": [ids]} → {"prompt": text}
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  const ServedModel* served = context.model();
  if (served == nullptr) return writer->reply(error_reply(model_loading_error()));
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  Fields fields(*body);
  if (auto error = check_model_name(fields, *served)) return writer->reply(error_reply(*error));
  if (!fields.has("tokens")) {
    fields.fail("tokens", "`tokens` is missing; it is an array of token ids", "missing_parameter");
  }
  std::vector<int32_t> ids;
  fields.token_ids("tokens", served->tokenizer->vocab_size(), std::string::npos, ids);
  bool skip_special = false;
  fields.boolean("skip_special_tokens", skip_special);
  if (auto error = fields.finish()) return writer->reply(error_reply(*error));
  reply_json(*writer, {{"prompt", served->tokenizer->decode(ids, !skip_special)}});
}

}  // namespace

Endpoint detokenize_endpoint() {
  return {.method = "POST", .path = "/detokenize", .handle = handle};
}

}  // namespace wok
