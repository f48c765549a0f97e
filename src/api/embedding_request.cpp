#include "api/embedding_request.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>

#include "base/log.h"

namespace wok {
namespace {

constexpr int kNotCancelled = -1;

ApiError cancelled_error(int reason) {
  if (reason == static_cast<int>(CancelReason::kTimeout)) {
    return {.status = 504,
            .message = "the request took longer than the server's --request-timeout",
            .code = "timeout"};
  }
  return draining_error();
}

void reply_with(ResponseWriter& writer, const EmbeddingResult& result, int cancelled,
                const std::function<std::string(const std::vector<float>&)>& body) {
  // The allocator throws; this is the edge where that ends.
  try {
    if (result.ok()) {
      ApiReply reply;
      reply.body = body(*result);
      return writer.reply(std::move(reply));
    }
    writer.reply(error_reply(cancelled == kNotCancelled ? to_api_error(result.error())
                                                        : cancelled_error(cancelled)));
  } catch (const std::exception& error) {
    log::error("an embedding's reply failed: {}", error.what());
    writer.reply(error_reply({.status = 500, .message = "internal error; see the server's log"}));
  }
}

}  // namespace

LengthLimit read_length_limit(Fields& fields, const ServedModel& served) {
  LengthLimit limit{.window = served.context_tokens()};
  bool cut = false;
  int32_t at = 0;
  fields.boolean("truncate", cut);
  fields.integer("truncate_prompt_tokens", -1, limit.window, at);
  if (at == 0 && fields.has("truncate_prompt_tokens")) {
    fields.fail("truncate_prompt_tokens", "`truncate_prompt_tokens` of 0 leaves nothing",
                "invalid_value");
  }
  if (cut || at == -1) limit.cut_at = limit.window;
  if (at > 0) limit.cut_at = at;
  return limit;
}

ApiError too_long_error(const std::string& where, size_t tokens, int32_t window) {
  return {.message = fmt::format("{} has {} tokens (n_prompt = {}), and the model takes {} (n_ctx "
                                 "= {}); shorten it, or send \"truncate\": true to have it cut",
                                 where, tokens, tokens, window, window),
          .param = where,
          .code = "context_length_exceeded"};
}

std::variant<TokenSequence, ApiError> encode_text(const ServedModel& served,
                                                  const LengthLimit& limit,
                                                  const std::string& where, std::string_view first,
                                                  const std::string_view* second) {
  if (first.size() > kMaxTextBytes || (second != nullptr && second->size() > kMaxTextBytes)) {
    return ApiError{.message = fmt::format("{} has more than {} bytes, the most wok tokenizes",
                                           where, kMaxTextBytes),
                    .param = where,
                    .code = "context_length_exceeded"};
  }
  auto encoded = served.pair_tokenizer->encode_pair(first, second, limit.cut_at);
  if (!encoded.ok()) {
    ApiError error = to_api_error(encoded.error());
    error.param = where;
    return error;
  }
  if (encoded->ids.size() > static_cast<size_t>(limit.window)) {
    return too_long_error(where, encoded->ids.size(), limit.window);
  }
  return TokenSequence{std::move(encoded->ids), std::move(encoded->types)};
}

void embed_and_reply(ApiContext& context, ServedModel& served, std::vector<TokenSequence> sequences,
                     const std::shared_ptr<ResponseWriter>& writer,
                     std::function<std::string(const std::vector<float>&)> body) {
  auto cancelled = std::make_shared<std::atomic<int>>(kNotCancelled);
  auto done = [&context, writer, cancelled, body = std::move(body)](EmbeddingResult result) {
    context.text_pool().post([writer, cancelled, body, result = std::move(result)] {
      reply_with(*writer, result, cancelled->load(), body);
    });
  };
  const auto id = served.embedder->submit(std::move(sequences), std::move(done));
  if (!id.ok()) return writer->reply(error_reply(to_api_error(id.error())));
  writer->on_cancel([embedder = served.embedder.get(), id = *id, cancelled](CancelReason reason) {
    cancelled->store(static_cast<int>(reason));
    embedder->cancel(id);
  });
}

}  // namespace wok
