#include "text/chat_template.h"

#include <utility>

#include "text/rust_text.h"

namespace wok {

namespace {

class RustChatTemplate final : public ChatTemplate {
 public:
  explicit RustChatTemplate(RustHandle<wok_template, wok_template_free> handle)
      : handle_(std::move(handle)) {}

  Result<std::string> render(const ChatTemplateInput& input) const override {
    const nlohmann::json fields = {{"messages", input.messages},
                                   {"tools", input.tools},
                                   {"kwargs", input.kwargs},
                                   {"add_generation_prompt", input.add_generation_prompt},
                                   {"continue_final_message", input.continue_final_message},
                                   {"now_unix_s", input.now_unix_s}};
    std::string json;
    try {
      json = fields.dump();
    } catch (const nlohmann::json::exception& error) {  // a string that is not UTF-8
      return invalid(std::string("chat: the messages cannot be written as JSON: ") + error.what());
    }
    RustText output;
    RustText error;
    const wok_status status =
        wok_template_render(handle_.get(), rust_bytes(json), &output.raw, &error.raw);
    if (status != WOK_OK) return rust_error(status, error.view());
    return std::string(output.view());
  }

 private:
  RustHandle<wok_template, wok_template_free> handle_;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::create(const std::string& source,
                                                           const std::string& bos,
                                                           const std::string& eos) {
  wok_status status = WOK_OK;
  RustText error;
  RustHandle<wok_template, wok_template_free> handle(
      wok_template_new(rust_bytes(source), rust_bytes(bos), rust_bytes(eos), &status, &error.raw));
  if (!handle) return rust_error(status, error.view());
  return std::unique_ptr<ChatTemplate>(std::make_unique<RustChatTemplate>(std::move(handle)));
}

}  // namespace wok
