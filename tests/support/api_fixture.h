// An ApiContext on a fake model, and calls of its endpoints without HTTP.
#pragma once

#include <memory>
#include <string>

#include "api/api_context.h"
#include "api/endpoint.h"
#include "tests/support/fake_model.h"
#include "tests/support/recording_writer.h"

namespace wok::test {

struct ApiFixture {
  explicit ApiFixture(FakeEngineOptions options = {}) : model(std::move(options)) {
    context.set_model(&model.served);
  }
  ~ApiFixture() { context.stop(); }

  std::shared_ptr<RecordingWriter> start(std::string_view method, std::string path,
                                         std::string body) {
    auto writer = std::make_shared<RecordingWriter>();
    const Route route = find_route(method, path);
    if (route.endpoint == nullptr) {
      writer->reply(no_route_reply(route, method, path));
    } else {
      ApiRequest request{std::string(method), std::move(path), std::move(body),
                         context.clock().steady_ns()};
      dispatch(context, *route.endpoint, std::move(request), writer);
    }
    return writer;
  }
  std::shared_ptr<RecordingWriter> post(std::string path, const nlohmann::json& body) {
    return post_text(std::move(path), body.dump());
  }
  std::shared_ptr<RecordingWriter> post_text(std::string path, std::string body) {
    auto writer = start("POST", std::move(path), std::move(body));
    if (!writer->wait()) std::abort();  // a reply that never ends fails the test loudly
    return writer;
  }
  std::shared_ptr<RecordingWriter> get(std::string path) {
    auto writer = start("GET", std::move(path), "");
    if (!writer->wait()) std::abort();
    return writer;
  }

  // True once the engine has nothing left, within a minute.
  bool wait_idle() {
    for (int i = 0; i < 6000 && !model.engine->idle(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return model.engine->idle();
  }

  ApiContext context;
  FakeModel model;  // ends first: the last events of its engine are counted in the context
};

}  // namespace wok::test
