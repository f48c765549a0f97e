// Errors as OpenAI's clients expect them: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>

#include "api/http.h"
#include "base/result.h"

namespace wok {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};  // "" becomes null
  std::string code = {};   // "" becomes null
};

// 429 and 503 carry Retry-After.
ApiReply error_reply(const ApiError& error);
// The same as one JSON object, for an error inside a stream.
std::string error_json(const ApiError& error);

// What the engine, tokenizer or template said, as HTTP: kBusy 429, kCancelled 503, what the client
// can mend 400, the rest 500.
ApiError to_api_error(const Error& error);

ApiError model_loading_error();
ApiError draining_error();

}  // namespace wok
