// Bytes as a model file's chat template: a syntax error, a run-time error, or UTF-8 text; never a
// crash, and never a template that runs for ever (the fuzzer's time limit watches that).
#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_check.h"
#include "text/chat_template.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto made = wok::ChatTemplate::create(source, "<s>", "</s>");
  if (!made.ok()) {
    wok::fuzz::check_message(made.error().message, source);
    return 0;
  }
  wok::ChatTemplateInput input;
  input.messages = {{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", " Grüße "}},
                    {{"role", "assistant"}, {"content", "a\nb"}}};
  input.tools = {
      {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"x", 1.5}}}}}}};
  input.kwargs = {{"enable_thinking", false}};
  const auto text = made.value()->render(input);
  if (text.ok()) {
    wok::fuzz::demand(wok::find_invalid_utf8(*text) == std::string::npos, "text that is no UTF-8",
                      *text);
  } else {
    wok::fuzz::check_message(text.error().message, source);
  }
  return 0;
}
