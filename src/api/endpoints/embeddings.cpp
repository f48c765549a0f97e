// POST /v1/embeddings: texts or token ids → vectors, in OpenAI's shape.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "api/base64.h"
#include "api/embedding_request.h"
#include "api/endpoints/generate.h"
#include "api/endpoints/list.h"
#include "api/json_write.h"

namespace wok {
namespace {

using nlohmann::json;

constexpr const char* kInputForms =
    "a string, an array of token ids, or an array of up to 2048 of either";

struct EmbeddingsRequest {
  std::vector<TokenSequence> sequences;
  bool base64 = false;
  int32_t dimensions = 0;
};

std::string name_of(size_t index, bool many) {
  return many ? fmt::format("input[{}]", index) : "input";
}

std::optional<ApiError> read_ids(const json& ids, const std::string& where,
                                 const ServedModel& served, const LengthLimit& limit,
                                 TokenSequence& out) {
  const int32_t vocab = served.tokenizer->vocab_size();
  for (const json& id : ids) {
    if (!id.is_number_integer() || id < 0 || id >= vocab) {
      return ApiError{.message = fmt::format("`{}` must hold token ids from 0 to {}, found {}",
                                             where, vocab - 1, describe(id)),
                      .param = where,
                      .code = "invalid_value"};
    }
    out.tokens.push_back(id.get<int32_t>());
  }
  if (limit.cut_at > 0 && out.tokens.size() > static_cast<size_t>(limit.cut_at)) {
    out.tokens.resize(static_cast<size_t>(limit.cut_at));
  }
  if (out.tokens.size() > static_cast<size_t>(limit.window)) {
    return too_long_error(where, out.tokens.size(), limit.window);
  }
  return std::nullopt;
}

// One text or list of ids.
std::optional<ApiError> read_one(const json& value, const std::string& where,
                                 const ServedModel& served, const LengthLimit& limit,
                                 std::vector<TokenSequence>& out) {
  const bool text = value.is_string();
  if (!text && !value.is_array()) {
    return ApiError{.message = fmt::format("`{}` must be a string or an array of token ids, found "
                                           "{}; `input` is {}",
                                           where, describe(value), kInputForms),
                    .param = where,
                    .code = "invalid_value"};
  }
  if (text ? value.get_ref<const std::string&>().empty() : value.empty()) {
    return ApiError{.message = fmt::format("`{}` is empty: there is nothing to embed", where),
                    .param = where,
                    .code = "invalid_value"};
  }
  if (!text) return read_ids(value, where, served, limit, out.emplace_back());
  auto encoded = encode_text(served, limit, where, value.get_ref<const std::string&>());
  if (auto* error = std::get_if<ApiError>(&encoded)) return std::move(*error);
  out.push_back(std::get<TokenSequence>(std::move(encoded)));
  return std::nullopt;
}

std::optional<ApiError> read_input(const json& input, const ServedModel& served,
                                   const LengthLimit& limit, std::vector<TokenSequence>& out) {
  const bool many = input.is_array() && !input.empty() && !input[0].is_number();
  if (!many) return read_one(input, name_of(0, false), served, limit, out);
  if (input.size() > kMaxTexts) {
    return ApiError{.message = fmt::format("`input` has {} texts; a request takes up to {}",
                                           input.size(), kMaxTexts),
                    .param = "input",
                    .code = "invalid_value"};
  }
  for (size_t i = 0; i < input.size(); ++i) {
    if (auto error = read_one(input[i], name_of(i, true), served, limit, out)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> read(const ServedModel& served, const json& body, EmbeddingsRequest& out) {
  Fields fields(body);
  if (auto error = check_model_name(fields, served)) return error;
  std::string format = "float";
  fields.string("encoding_format", 32, format);
  if (format != "float" && format != "base64") {
    fields.fail("encoding_format", "`encoding_format` must be \"float\" or \"base64\"",
                "invalid_value");
  }
  out.base64 = format == "base64";
  fields.integer("dimensions", 1, served.embedder->model().width(), out.dimensions);
  const LengthLimit limit = read_length_limit(fields, served);
  fields.accept("user");
  const json* input = fields.get("input");
  if (input == nullptr) {
    fields.fail("input", fmt::format("`input` is missing; it is {}", kInputForms),
                "missing_parameter");
  }
  if (auto error = fields.finish()) return error;
  return read_input(*input, served, limit, out.sequences);
}

void append_floats(std::string& out, const float* values, int32_t count) {
  out += '[';
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", std::isfinite(values[i]) ? values[i] : 0.0f);
  }
  out += ']';
}

// The first so many numbers, of length 1 again where the model's vectors are.
void shorten(float* values, int32_t count, bool normalize) {
  if (!normalize) return;
  double squares = 0;
  for (int32_t i = 0; i < count; ++i) squares += double{values[i]} * values[i];
  const double by = 1 / std::max(std::sqrt(squares), 1e-12);
  for (int32_t i = 0; i < count; ++i) values[i] = static_cast<float>(values[i] * by);
}

void handle(ApiContext& context, ApiRequest request, std::shared_ptr<ResponseWriter> writer) {
  ServedModel* served = model_or_reply(context, *writer, Task::kEmbed);
  if (served == nullptr) return;
  const auto body = body_or_reply(request, *writer);
  if (!body) return;
  EmbeddingsRequest parsed;
  if (auto error = read(*served, *body, parsed)) return writer->reply(error_reply(*error));
  size_t tokens = 0;
  for (const TokenSequence& sequence : parsed.sequences) tokens += sequence.tokens.size();
  const int32_t width = served->embedder->model().width();
  const bool normalize = served->info.normalize;
  auto make = [id = served->id, tokens, width, normalize, base64 = parsed.base64,
               dimensions = parsed.dimensions](const std::vector<float>& values) {
    std::string out = R"({"object":"list","data":[)";
    std::vector<float> vector(static_cast<size_t>(width));
    const int32_t count = dimensions > 0 ? dimensions : width;
    for (size_t i = 0; i * vector.size() < values.size(); ++i) {
      std::copy_n(&values[i * vector.size()], vector.size(), vector.begin());
      if (count < width) shorten(vector.data(), count, normalize);
      out += i > 0 ? "," : "";
      out += R"({"object":"embedding","index":)";
      append_json_int(out, static_cast<int64_t>(i));
      out += R"(,"embedding":)";
      if (base64) {
        out += '"';
        append_base64(out, reinterpret_cast<const uint8_t*>(vector.data()),
                      static_cast<size_t>(count) * sizeof(float));
        out += '"';
      } else {
        append_floats(out, vector.data(), count);
      }
      out += '}';
    }
    out += R"(],"model":)";
    append_json_string(out, id);
    out += fmt::format(R"(,"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})", tokens, tokens);
    return out;
  };
  embed_and_reply(context, *served, std::move(parsed.sequences), writer, std::move(make));
}

}  // namespace

Endpoint embeddings_endpoint() {
  return {.method = "POST", .path = "/v1/embeddings", .handle = handle};
}

}  // namespace wok
