#include "api/api_error.h"

#include "api/json_write.h"

namespace wok {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

void append_or_null(std::string& out, const std::string& text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, text);
  }
}

}  // namespace

std::string error_json(const ApiError& error) {
  std::string out = R"({"error":{"message":)";
  append_json_string(out, error.message);
  out += R"(,"type":")";
  out += type_of(error.status);
  out += R"(","param":)";
  append_or_null(out, error.param);
  out += R"(,"code":)";
  append_or_null(out, error.code);
  out += "}}";
  return out;
}

ApiReply error_reply(const ApiError& error) {
  ApiReply reply;
  reply.status = error.status;
  reply.body = error_json(error);
  if (error.status == 429) reply.headers.emplace_back("Retry-After", "1");
  if (error.status == 503) reply.headers.emplace_back("Retry-After", "5");
  return reply;
}

ApiError to_api_error(const Error& error) {
  ApiError out;
  out.message = error.message;
  switch (error.kind) {
    case ErrorKind::kBusy:
      out.status = 429;
      out.code = "queue_full";
      break;
    case ErrorKind::kCancelled:
      out.status = 503;
      out.code = "draining";
      break;
    case ErrorKind::kTooLarge:
      out.code = "context_length_exceeded";
      break;
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported:
      break;
    case ErrorKind::kNotFound:
      out.status = 404;
      break;
    case ErrorKind::kNoMemory:
      out.status = 503;
      break;
    case ErrorKind::kIo:
      out.status = 500;
      break;
  }
  return out;
}

ApiError model_loading_error() {
  return {.status = 503,
          .message = "the model is still loading; /ready says when it is there",
          .param = "",
          .code = "model_loading"};
}

ApiError draining_error() {
  return {.status = 503,
          .message = "the server is shutting down and takes no new requests",
          .param = "",
          .code = "draining"};
}

}  // namespace wok
