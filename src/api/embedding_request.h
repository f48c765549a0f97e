// What /v1/embeddings and /v1/rerank do alike: texts to token sequences, those to the embedder, and
// its numbers to a reply.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/api_context.h"
#include "api/api_error.h"
#include "api/fields.h"
#include "api/http.h"

namespace wok {

constexpr size_t kMaxTexts = 2048;          // of one request
constexpr size_t kMaxTextBytes = 1u << 20;  // of one text

// How long a text may be: `truncate` (a boolean) cuts it to the model's window,
// `truncate_prompt_tokens` to so many tokens (-1: the window). Without them what is longer than the
// window is refused.
struct LengthLimit {
  int32_t window = 0;
  int32_t cut_at = 0;  // 0: never
};
LengthLimit read_length_limit(Fields& fields, const ServedModel& served);

// A text, or a pair of them where `second` is not null. `where` names it in messages ("input[3]").
std::variant<TokenSequence, ApiError> encode_text(const ServedModel& served,
                                                  const LengthLimit& limit,
                                                  const std::string& where, std::string_view first,
                                                  const std::string_view* second = nullptr);

// A sequence that is too long.
ApiError too_long_error(const std::string& where, size_t tokens, int32_t window);

// Computes the sequences and answers with the object that `body` makes of the numbers, on the text
// pool; or with what went wrong.
void embed_and_reply(ApiContext& context, ServedModel& served, std::vector<TokenSequence> sequences,
                     const std::shared_ptr<ResponseWriter>& writer,
                     std::function<std::string(const std::vector<float>&)> body);

}  // namespace wok
