// An endpoint is one file in endpoints/ and one name in endpoints/list.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/http.h"

namespace wok {

class ApiContext;

enum class RunOn {
  kIoThread,  // answers in microseconds, whatever else goes on
  kTextPool,  // parses bodies, renders templates, tokenizes
};

struct Endpoint {
  std::string_view method;
  std::string_view path;  // a last segment "*" takes the rest of the path, at least one character
  RunOn run_on = RunOn::kTextPool;
  bool open = false;  // answers without an API key
  void (*handle)(ApiContext&, ApiRequest, std::shared_ptr<ResponseWriter>) = nullptr;
};

std::span<const Endpoint> endpoints();

struct Route {
  const Endpoint* endpoint = nullptr;  // null: see allow
  std::string allow;  // methods of a path that exists ("GET, HEAD, OPTIONS"); "": no such path
};
Route find_route(std::string_view method, std::string_view path);

// 404 or 405 in OpenAI's shape.
ApiReply no_route_reply(const Route& route, std::string_view method, std::string_view path);

// Runs the endpoint where it wants to run. What it throws becomes a 500.
void dispatch(ApiContext& context, const Endpoint& endpoint, ApiRequest request,
              std::shared_ptr<ResponseWriter> writer);

}  // namespace wok
