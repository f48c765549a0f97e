// Bytes as the body of a request: read as JSON and then by every endpoint that takes one, up to
// where the engine would begin. A real tokenizer and a real chat template stand behind it.
#include <cstdint>
#include <string>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/endpoint.h"
#include "api/json_body.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/fake_engine.h"
#include "tests/support/recording_writer.h"
#include "text/tokenizer_fixtures.h"

namespace wok {
namespace {

using fuzz::demand;

constexpr char kTemplate[] =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}"
    "{% if message.tool_calls %}{{ message.tool_calls | tojson }}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

struct Served {
  Served() : context({.text_threads = 1}) {
    model.id = "fuzz";
    auto tokenizer = Tokenizer::create(test::byte_level_data("smollm"));
    auto chat_template = ChatTemplate::create(kTemplate, "<s>", "<|im_end|>");
    demand(tokenizer.ok() && chat_template.ok(), "the fixtures do not load");
    model.tokenizer = std::move(tokenizer).value();
    model.chat_template = std::move(chat_template).value();
    model.engine = std::make_unique<test::FakeEngine>(
        test::FakeEngineOptions{.vocab = model.tokenizer->vocab_size()});
    context.set_model(&model);
  }

  ServedModel model;
  ApiContext context;
};

void check_error(const ApiError& error, const std::string& body) {
  demand(error.status >= 400 && error.status < 500, "a bad request is the client's fault", body);
  fuzz::check_message(error.message, body);
  const ApiReply reply = error_reply(error);
  const auto sent = nlohmann::json::parse(reply.body, nullptr, false);
  demand(sent.is_object() && sent["error"]["message"].is_string(), "an error in no JSON");
}

void check_params(const GenerateParams& p, const ServedModel& served) {
  const int32_t vocab = served.tokenizer->vocab_size();
  demand(p.n >= 1 && p.n <= kMaxN, "n out of range");
  demand(!p.max_tokens || *p.max_tokens >= 1, "max_tokens out of range");
  demand(p.sampling.temperature >= 0 && p.sampling.temperature <= 2, "temperature out of range");
  demand(p.sampling.top_k >= 0, "top_k out of range");
  demand(p.stop.size() <= kMaxStops, "too many stops");
  for (const std::string& stop : p.stop) demand(!stop.empty(), "an empty stop");
  for (const int32_t id : p.stop_token_ids) demand(id >= 0 && id < vocab, "a stop id");
  for (const auto& [id, bias] : p.sampling.logit_bias) {
    demand(id >= 0 && id < vocab && bias >= -100 && bias <= 100, "a bias");
  }
}

void check_prompt(const std::vector<int32_t>& prompt, const ServedModel& served) {
  for (const int32_t id : prompt) {
    demand(id >= 0 && id < served.tokenizer->vocab_size(), "a token outside the vocabulary");
  }
}

void check_generating(const Served& served, const nlohmann::json& body, const std::string& text) {
  auto chat = read_chat_request(served.context, served.model, body);
  if (const auto* error = std::get_if<ApiError>(&chat)) {
    check_error(*error, text);
  } else {
    check_params(std::get<ChatRequest>(chat).params, served.model);
    check_prompt(std::get<ChatRequest>(chat).prompt, served.model);
  }
  auto completion = read_completion_request(served.context, served.model, body);
  if (const auto* error = std::get_if<ApiError>(&completion)) {
    check_error(*error, text);
  } else {
    const auto& request = std::get<CompletionRequest>(completion);
    check_params(request.params, served.model);
    for (const auto& prompt : request.prompts) check_prompt(prompt, served.model);
    demand(request.echo.empty() || request.echo.size() == request.prompts.size(), "echoes");
  }
}

// The endpoints that answer at once, whole.
void check_answers(Served& served, const std::string& body) {
  for (const char* path : {"/tokenize", "/detokenize", "/apply-template"}) {
    const Route route = find_route("POST", path);
    demand(route.endpoint != nullptr, "an endpoint is gone");
    auto writer = std::make_shared<test::RecordingWriter>();
    route.endpoint->handle(served.context, {"POST", path, body, 0}, writer);
    demand(writer->wait(), "no answer");
    demand(writer->whole().status == 200 ||
               (writer->whole().status >= 400 && writer->whole().status < 500),
           "neither an answer nor the client's fault");
    demand(writer->json().is_object(), "an answer that is no JSON");
  }
}

}  // namespace
}  // namespace wok

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wok;
  static Served served;
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto parsed = parse_json_body(text);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    check_error(*error, text);
    return 0;
  }
  check_generating(served, std::get<nlohmann::json>(parsed), text);
  check_answers(served, text);
  return 0;
}
