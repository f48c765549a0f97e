// The parameters that /v1/chat/completions and /v1/completions share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "api/fields.h"
#include "api/served_model.h"
#include "sampling/params.h"

namespace wok {

constexpr int kMaxN = 16;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxStopTokenIds = 256;

struct GenerateParams {
  SamplingParams sampling;            // choice i of a prompt samples with seed + i
  std::optional<int32_t> max_tokens;  // absent: the rest of the window
  int32_t n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  int32_t priority = 0;
  uint64_t prefix_namespace = 0;
  bool stream = false;
  bool include_usage = false;
  bool include_stop = false;  // leave stop strings and stop tokens in the text
  bool show_special = false;  // the text of control tokens, too
  bool return_token_ids = false;
  bool add_special_tokens = true;  // BOS, where the model wants one
};

// Everything but what is the endpoint's own: model, messages or prompt, logprobs, max_tokens' name.
// `random_seed` is used where the request has none.
void read_generate_params(Fields& fields, const ServedModel& served, uint64_t random_seed,
                          GenerateParams& params);

// 404 with what is there, when `model` names another than the served one.
std::optional<ApiError> check_model_name(Fields& fields, const ServedModel& served);

// Never cut silently: 400 with n_prompt and n_ctx when the prompt and what it asks for do not fit.
// Otherwise how many tokens may be generated.
struct OutputLimit {
  int32_t max_new_tokens = 0;
  std::optional<ApiError> error = std::nullopt;
};
OutputLimit output_limit(int64_t n_prompt, const std::optional<int32_t>& max_tokens, int32_t n_ctx);

// Refuses, untokenized, a text that is too long even if all its tokens were the longest there is.
std::optional<ApiError> check_text_length(size_t bytes, size_t longest_piece, int32_t n_ctx,
                                          const std::string& param);

}  // namespace wok
