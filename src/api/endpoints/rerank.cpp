// POST /v1/rerank and /rerank: a query and documents → the documents in order of relevance, in the
// shape of Cohere's and Jina's APIs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "api/embedding_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"

namespace wok {
namespace {

using nlohmann::json;

struct RerankRequest {
  std::vector<std::string> documents;
  std::vector<TokenSequence> sequences;
  int32_t top_n = 0;  // 0: all
  bool return_documents = false;
  bool raw_scores = false;
};

std::optional<ApiError> read_documents(const json& list, std::vector<std::string>& out) {
  const auto wrong = [](std::string where, const std::string& message) {
    return ApiError{.message = message, .param = std::move(where), .code = "invalid_value"};
  };
  if (!list.is_array() || list.empty() || list.size() > kMaxTexts) {
    return wrong("documents", fmt::format("`documents` must be an array of 1 to {} texts, found {}",
                                          kMaxTexts, describe(list)));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("documents[{}]", i);
    const json* text = &list[i];
    if (text->is_object() && text->size() == 1 && text->contains("text")) text = &text->at("text");
    if (!text->is_string()) {
      return wrong(where, fmt::format("`{}` must be a string or {{\"text\": string}}, found {}",
                                      where, describe(list[i])));
    }
    out.push_back(text->get<std::string>());
  }
  return std::nullopt;
}

std::optional<ApiError> read(const ServedModel& served, const json& body, RerankRequest& out) {
  Fields fields(body);
  if (auto error = check_model_name(fields, served)) return error;
  std::string query;
  fields.string("query", kMaxTextBytes, query);
  if (query.empty()) {
    fields.fail("query", "`query` is missing or empty; it is a string", "missing_parameter");
  }
  const json* documents = fields.get("documents");
  if (documents == nullptr) {
    fields.fail("documents", "`documents` is missing; it is an array of strings",
                "missing_parameter");
  }
  fields.integer("top_n", 1, INT32_MAX, out.top_n);
  fields.boolean("return_documents", out.return_documents);
  fields.boolean("raw_scores", out.raw_scores);
  const LengthLimit limit = read_length_limit(fields, served);
  fields.accept("user");
  if (auto error = fields.finish()) return error;
  if (auto error = read_documents(*documents, out.documents)) return error;
  for (size_t i = 0; i < out.documents.size(); ++i) {
    const std::string_view document = out.documents[i];
    auto encoded = encode_text(served, limit, fmt::format("documents[{}]", i), query, &document);
    if (auto* error = std::get_if<ApiError>(&encoded)) {
      if (error->code == "context_length_exceeded")
        error->message = "with the query, " + error->message;
      return std::move(*error);
    }
    out.sequences.push_back(std::get<TokenSequence>(std::move(encoded)));
  }
  return std::nullopt;
}

// Not every number of a model is one JSON can hold.
double relevance(float score, bool raw) {
  const double value = raw ? double{score} : 1 / (1 + std::exp(-double{score}));
  return std::isfinite(value) ? value : 0;
}

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  ServedModel* served = model_or_reply(context, *writer, Task::kRank);
  if (served == nullptr) return;
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  RerankRequest parsed;
  if (auto error = read(*served, *body, parsed)) return writer->reply(error_reply(*error));
  size_t tokens = 0;
  for (const TokenSequence& sequence : parsed.sequences) tokens += sequence.tokens.size();
  std::vector<TokenSequence> sequences = std::move(parsed.sequences);
  const std::string id = fmt::format("rerank-{:016x}", context.clock().random());
  auto make = [id, model = served->id, tokens,
               parsed = std::move(parsed)](const std::vector<float>& scores) {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return relevance(scores[a], true) > relevance(scores[b], true);
    });
    if (parsed.top_n > 0) {
      order.resize(std::min(order.size(), static_cast<size_t>(parsed.top_n)));
    }
    json results = json::array();
    for (const size_t index : order) {
      json one = {{"index", index},
                  {"relevance_score", relevance(scores[index], parsed.raw_scores)}};
      if (parsed.return_documents) one["document"] = {{"text", parsed.documents[index]}};
      results.push_back(std::move(one));
    }
    const json reply = {{"id", id},
                        {"object", "list"},
                        {"model", model},
                        {"results", std::move(results)},
                        {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
    return reply.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  embed_and_reply(context, *served, std::move(sequences), writer, std::move(make));
}

}  // namespace

Endpoint rerank_endpoint() {
  return {.method = "POST", .path = "/v1/rerank", .handle = handle};
}

// Where Jina's and vLLM's clients look, too.
Endpoint rerank_plain_endpoint() {
  return {.method = "POST", .path = "/rerank", .handle = handle};
}

}  // namespace wok
