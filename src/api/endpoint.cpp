#include "api/endpoint.h"

#include <array>
#include <exception>

#include "api/api_context.h"
#include "api/api_error.h"
#include "api/endpoints/list.h"
#include "base/log.h"

namespace wok {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

void run_guarded(ApiContext& context, const Endpoint& endpoint, ApiRequest request,
                 const std::shared_ptr<ResponseWriter>& writer) {
  // nlohmann::json, prometheus-cpp and the allocator throw; this is the edge where that ends.
  try {
    endpoint.handle(context, std::move(request), writer);
  } catch (const std::bad_alloc&) {
    writer->reply(error_reply({.status = 503, .message = "not enough memory for this request"}));
  } catch (const std::exception& error) {
    log::error("{} {} failed: {}", endpoint.method, endpoint.path, error.what());
    writer->reply(error_reply({.status = 500, .message = "internal error; see the server's log"}));
  }
}

}  // namespace

std::span<const Endpoint> endpoints() {
#define WOK_CALL_ENDPOINT(name) name##_endpoint(),
  static const std::array table{WOK_ENDPOINTS(WOK_CALL_ENDPOINT)};
#undef WOK_CALL_ENDPOINT
  return table;
}

Route find_route(std::string_view method, std::string_view path) {
  Route route;
  for (const Endpoint& endpoint : endpoints()) {
    if (!matches(endpoint.path, path)) continue;
    const bool head = method == "HEAD" && endpoint.method == "GET";
    if (endpoint.method == method || head) route.endpoint = &endpoint;
    route.allow += route.allow.empty() ? "" : ", ";
    route.allow += endpoint.method;
    if (endpoint.method == "GET") route.allow += ", HEAD";
  }
  if (!route.allow.empty()) route.allow += ", OPTIONS";
  return route;
}

ApiReply no_route_reply(const Route& route, std::string_view method, std::string_view path) {
  const std::string what(path.substr(0, 200));
  if (route.allow.empty()) {
    return error_reply({.status = 404,
                        .message = "there is no endpoint " + what +
                                   "; see /v1/models, "
                                   "/v1/chat/completions, /v1/completions, /v1/embeddings, "
                                   "/v1/rerank",
                        .code = "unknown_url"});
  }
  ApiReply reply =
      error_reply({.status = 405,
                   .message = what + " does not take " + std::string(method.substr(0, 20)) +
                              "; it takes " + route.allow,
                   .code = "method_not_allowed"});
  reply.headers.emplace_back("Allow", route.allow);
  return reply;
}

void dispatch(ApiContext& context, const Endpoint& endpoint, ApiRequest request,
              std::shared_ptr<ResponseWriter> writer) {
  if (endpoint.run_on == RunOn::kIoThread) {
    run_guarded(context, endpoint, std::move(request), writer);
    return;
  }
  context.text_pool().post(
      [&context, &endpoint, request = std::move(request), writer = std::move(writer)]() mutable {
        if (!writer->closed()) run_guarded(context, endpoint, std::move(request), writer);
      });
}

}  // namespace wok
