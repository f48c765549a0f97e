// A tokenizer for tests: ids 0..255 are bytes, then come words, pieces that end in the middle of a
// UTF-8 character, and control tokens. encode() is bytes; decode() is exact.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace wok::test {

class FakeTokenizer : public Tokenizer {
 public:
  FakeTokenizer() {
    for (int i = 0; i < 256; ++i) pieces_.emplace_back(1, static_cast<char>(i));
    for (const char* word :
         {" alpha", " beta", " gamma", " delta", " epsilon", " zeta", " eta", " theta", ". ", ", ",
          "\n", " \"quoted\"", " caf\xC3\xA9", " \xF0\x9F\x98", "\x80", "END"}) {
      pieces_.emplace_back(word);
    }
    first_control_ = static_cast<int32_t>(pieces_.size());
    for (const char* control : {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"}) {
      pieces_.emplace_back(control);
    }
    end_ids_ = {eos_id(), id_of("<|im_end|>")};
  }

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special,
                                      bool parse_special) const override {
    std::vector<int32_t> ids;
    if (add_special && !(parse_special && text.starts_with("<bos>"))) ids.push_back(bos_id());
    while (!text.empty()) {
      int32_t id = static_cast<unsigned char>(text.front());
      size_t length = 1;
      for (int32_t control = first_control_; parse_special && control < vocab_size(); ++control) {
        if (!text.starts_with(pieces_[control])) continue;
        id = control;
        length = pieces_[control].size();
      }
      ids.push_back(id);
      text.remove_prefix(length);
    }
    return ids;
  }

  std::string_view piece(int32_t id, bool show_special = false) const override {
    if (id < 0 || id >= vocab_size() || (is_control(id) && !show_special)) return "";
    return pieces_[id];
  }

  std::string decode(std::span<const int32_t> ids, bool show_special = false) const override {
    std::string text;
    for (const int32_t id : ids) text += piece(id, show_special);
    return text;
  }

  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return first_control_; }
  int32_t eos_id() const override { return first_control_ + 1; }
  bool add_bos() const override { return true; }
  const std::vector<int32_t>& end_ids() const override { return end_ids_; }
  bool is_control(int32_t id) const override { return id >= first_control_; }
  int32_t id_of(std::string_view piece) const override {
    const auto found = std::find(pieces_.begin(), pieces_.end(), piece);
    return found == pieces_.end() ? -1 : static_cast<int32_t>(found - pieces_.begin());
  }

 private:
  std::vector<std::string> pieces_;
  int32_t first_control_ = 0;
  std::vector<int32_t> end_ids_;
};

// ChatML without Jinja. kwargs {"fail": true} is a template that raises.
class FakeTemplate : public ChatTemplate {
 public:
  Result<std::string> render(const ChatTemplateInput& input) const override {
    if (input.kwargs.is_object() && input.kwargs.value("fail", false)) {
      return invalid("line 3: roles must alternate");
    }
    std::string text;
    for (const auto& message : input.messages) {
      text += "<|im_start|>" + message["role"].get<std::string>() + "\n" +
              message["content"].get<std::string>();
      if (&message != &input.messages.back() || !input.continue_final_message) {
        text += "<|im_end|>\n";
      }
    }
    if (input.add_generation_prompt) text += "<|im_start|>assistant\n";
    return text;
  }
};

}  // namespace wok::test
