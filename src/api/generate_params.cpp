#include "api/generate_params.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/refused_params.h"

namespace wok {
namespace {

using nlohmann::json;

void read_sampling(Fields& fields, SamplingParams& sampling) {
  fields.number("temperature", {.low = 0, .high = 2}, sampling.temperature);
  fields.number("top_p", {.low = 0, .high = 1, .low_open = true}, sampling.top_p);
  fields.number("min_p", {.low = 0, .high = 1, .high_open = true}, sampling.min_p);
  fields.number("typical_p", {.low = 0, .high = 1, .low_open = true}, sampling.typical_p);
  fields.number("repetition_penalty", {.low = 0, .high = 100, .low_open = true},
                sampling.repetition_penalty);
  fields.number("presence_penalty", {.low = -2, .high = 2}, sampling.presence_penalty);
  fields.number("frequency_penalty", {.low = -2, .high = 2}, sampling.frequency_penalty);
  fields.integer("top_k", -1, 1'000'000'000, sampling.top_k);
  sampling.top_k = std::max(sampling.top_k, 0);  // vLLM says "off" with -1, others with 0
  fields.integer("min_tokens", 0, 1'000'000'000, sampling.min_tokens);
  fields.boolean("ignore_eos", sampling.ignore_eos);
}

void read_logit_bias(Fields& fields, int32_t vocab, SamplingParams& sampling) {
  const json* bias = fields.get("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    fields.fail_value("logit_bias", "an object of token ids and biases", *bias);
    return;
  }
  for (const auto& [key, value] : bias->items()) {
    int32_t id = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || id < 0 ||
        id >= vocab) {
      fields.fail_value("logit_bias", fmt::format("keyed by token ids from 0 to {}", vocab - 1),
                        json(key));
      return;
    }
    if (!value.is_number() || !(value >= -100) || !(value <= 100)) {
      fields.fail_value("logit_bias", "of biases from -100 to 100", value);
      return;
    }
    sampling.logit_bias.emplace_back(id, value.get<float>());
  }
}

void read_stop(Fields& fields, std::vector<std::string>& stops) {
  const json* stop = fields.get("stop");
  if (stop == nullptr) return;
  const json list = stop->is_string() ? json::array({*stop}) : *stop;
  if (!list.is_array() || list.size() > kMaxStops) {
    fields.fail_value("stop", fmt::format("a string or an array of at most {}", kMaxStops), *stop);
    return;
  }
  for (const json& text : list) {
    const size_t bytes = text.is_string() ? text.get_ref<const std::string&>().size() : 0;
    if (bytes == 0 || bytes > kMaxStopBytes) {
      fields.fail_value("stop", fmt::format("of strings with 1 to {} bytes", kMaxStopBytes), text);
      return;
    }
    stops.push_back(text.get<std::string>());
  }
}

void read_stream(Fields& fields, GenerateParams& params) {
  fields.boolean("stream", params.stream);
  const json* options = fields.get("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    fields.fail_value("stream_options", "an object", *options);
    return;
  }
  if (!params.stream) {
    fields.fail("stream_options", "`stream_options` may only be given with `stream`: true");
    return;
  }
  Fields inner(*options, "stream_options.");
  inner.boolean("include_usage", params.include_usage);
  // OpenAI pads chunks against traffic analysis; asking for none is what wok does anyway.
  bool obfuscation = false;
  inner.boolean("include_obfuscation", obfuscation);
  if (obfuscation) inner.fail("include_obfuscation", "`include_obfuscation` is not supported");
  if (auto error = inner.finish()) fields.fail(error->param, error->message, error->code);
}

// FNV-1a, never 0: that is the namespace of requests without a salt.
uint64_t namespace_of(const std::string& salt) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : salt) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash == 0 ? 1 : hash;
}

}  // namespace

void read_generate_params(Fields& fields, const ServedModel& served, uint64_t random_seed,
                          GenerateParams& params) {
  check_refused_params(fields);
  const int32_t vocab = served.tokenizer->vocab_size();
  read_sampling(fields, params.sampling);
  read_logit_bias(fields, vocab, params.sampling);
  std::optional<uint64_t> seed;
  fields.any_integer("seed", seed);
  params.sampling.seed = seed.value_or(random_seed);
  fields.integer("n", 1, kMaxN, params.n);
  if (fields.has("best_of")) {
    int32_t best_of = params.n;
    fields.integer("best_of", 1, kMaxN, best_of);
    if (best_of != params.n) {
      fields.fail("best_of",
                  fmt::format("`best_of` other than `n` is not supported (found {}, n = {})",
                              best_of, params.n),
                  "unsupported_parameter");
    }
  }
  read_stop(fields, params.stop);
  fields.token_ids("stop_token_ids", vocab, kMaxStopTokenIds, params.stop_token_ids);
  fields.boolean("include_stop_str_in_output", params.include_stop);
  bool skip_special = true;
  fields.boolean("skip_special_tokens", skip_special);
  params.show_special = !skip_special;
  fields.boolean("return_token_ids", params.return_token_ids);
  fields.boolean("add_special_tokens", params.add_special_tokens);
  fields.integer("priority", -1'000'000, 1'000'000, params.priority);
  std::string salt;
  fields.string("cache_salt", 1024, salt);
  if (!salt.empty()) params.prefix_namespace = namespace_of(salt);
  read_stream(fields, params);
}

std::optional<ApiError> check_model_name(Fields& fields, const ServedModel& served) {
  std::string name = served.id;
  fields.string("model", 1024, name);
  if (name == served.id) return std::nullopt;
  return ApiError{.status = 404,
                  .message = fmt::format("model `{}` is not served here; there is `{}`",
                                         name.substr(0, 200), served.id),
                  .param = "model",
                  .code = "model_not_found"};
}

OutputLimit output_limit(int64_t n_prompt, const std::optional<int32_t>& max_tokens,
                         int32_t n_ctx) {
  const int64_t wanted = max_tokens ? *max_tokens : std::max<int64_t>(n_ctx - n_prompt, 1);
  if (n_prompt + wanted <= n_ctx) return {.max_new_tokens = static_cast<int32_t>(wanted)};
  ApiError error{.message = fmt::format(
                     "the context window has {} tokens (n_ctx = {}), but the prompt has {} "
                     "(n_prompt = {}) and {} {} requested for the answer; shorten the prompt, ask "
                     "for fewer tokens, or start wok with a larger --context",
                     n_ctx, n_ctx, n_prompt, n_prompt, wanted, max_tokens ? "are" : "at least is"),
                 .param = max_tokens && n_prompt < n_ctx ? "max_tokens" : "",
                 .code = "context_length_exceeded"};
  return {.max_new_tokens = 0, .error = std::move(error)};
}

std::optional<ApiError> check_text_length(size_t bytes, size_t longest_piece, int32_t n_ctx,
                                          const std::string& param) {
  const size_t least = bytes / longest_piece;
  if (least <= static_cast<size_t>(n_ctx)) return std::nullopt;
  return ApiError{.message = fmt::format("the context window has {} tokens (n_ctx = {}), but a "
                                         "text of {} bytes has more than {} (n_prompt > {})",
                                         n_ctx, n_ctx, bytes, least, least),
                  .param = param,
                  .code = "context_length_exceeded"};
}

}  // namespace wok
