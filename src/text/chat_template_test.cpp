#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace wok {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::unique_ptr<ChatTemplate> make(const std::string& source) {
  auto made = ChatTemplate::create(source, "<s>", "</s>");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(made).value() : nullptr;
}

ChatTemplateInput chat(json messages = {{{"role", "user"}, {"content", "Hi"}}}) {
  ChatTemplateInput input;
  input.messages = std::move(messages);
  return input;
}

std::string render(const std::string& source, const ChatTemplateInput& input = chat()) {
  auto text = make(source)->render(input);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : "";
}

Error failure(const std::string& source, const ChatTemplateInput& input = chat()) {
  auto text = make(source)->render(input);
  EXPECT_FALSE(text.ok()) << *text;
  if (text.ok()) return {};
  EXPECT_EQ(text.error().kind, ErrorKind::kInvalid);
  return text.error();
}

TEST(ChatTemplate, RendersAsTransformersDoes) {
  std::ifstream file(WOK_SOURCE_DIR "/tests/golden/chat_templates.json");
  ASSERT_TRUE(file) << "tests/golden/chat_templates.json is missing";
  const nlohmann::ordered_json golden = nlohmann::ordered_json::parse(file);
  for (const auto& one : golden["cases"]) {
    const std::string name = one["name"];
    const auto& given = golden["chats"][one["chat"].get<std::string>()];
    ChatTemplateInput input;
    input.messages = given["messages"];
    input.tools = given["tools"];
    input.kwargs = given["kwargs"];
    auto text = make(one["template"])->render(input);
    if (one["output"].is_null()) {
      EXPECT_FALSE(text.ok()) << name;
    } else {
      ASSERT_TRUE(text.ok()) << name << ": " << text.error().message;
      EXPECT_EQ(*text, one["output"].get<std::string>()) << name;
    }
  }
}

TEST(ChatTemplate, SyntaxErrorsNameTheLine) {
  auto made = ChatTemplate::create("ok\n{% if x %}\n{{ a b }}\n{% endif %}", "", "");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(made.error().message, HasSubstr("line 3"));
  for (const char* source :
       {"{% if %}", "{% for x in y %}", "{{", "{% nosuchtag %}", "{{ x | nope"}) {
    EXPECT_FALSE(ChatTemplate::create(source, "", "").ok()) << source;
  }
}

TEST(ChatTemplate, RaiseExceptionComesThroughVerbatim) {
  const Error error = failure("a\n{{ raise_exception('Roles must alternate: user/assistant') }}");
  EXPECT_THAT(error.message, HasSubstr("Roles must alternate: user/assistant"));
  EXPECT_THAT(error.message, HasSubstr("line 2"));
}

TEST(ChatTemplate, MistakesNameTheLine) {
  EXPECT_THAT(failure("\n\n{{ missing.attribute }}").message, HasSubstr("line 3"));
  EXPECT_THAT(failure("\n{{ messages[0].content.nosuchmethod() }}").message, HasSubstr("line 2"));
  EXPECT_THAT(failure("{{ nosuchfunction() }}").message, HasSubstr("nosuchfunction"));
  EXPECT_THAT(failure("{{ 1 + 'a' }}").message, HasSubstr("line 1"));
}

TEST(ChatTemplate, SeesTheSpecialTokensAndTheClock) {
  ChatTemplateInput input = chat();
  input.now_unix_s = 1722470400;  // 2024-08-01 00:00:00 UTC, a Thursday
  EXPECT_EQ(render("{{ bos_token }}|{{ eos_token }}|{{ strftime_now('%d %b %Y') }}", input),
            "<s>|</s>|01 Aug 2024");
  EXPECT_EQ(render("{{ strftime_now('%A, %Y-%m-%d %H:%M:%S %j %%') }}", input),
            "Thursday, 2024-08-01 00:00:00 214 %");
  EXPECT_THAT(failure("{{ strftime_now('%!') }}").message, HasSubstr("unknown directive"));
  input.now_unix_s = INT64_MAX;
  EXPECT_THAT(failure("{{ strftime_now('%Y') }}", input).message, HasSubstr("calendar"));
}

TEST(ChatTemplate, KwargsAreVariablesAndWin) {
  ChatTemplateInput input = chat();
  input.kwargs = {{"enable_thinking", false}, {"bos_token", "B"}};
  EXPECT_EQ(render("{{ enable_thinking }} {{ bos_token }}", input), "False B");
  input.kwargs = "text";
  EXPECT_THAT(failure("x", input).message, HasSubstr("chat_template_kwargs"));
}

TEST(ChatTemplate, NulBytesAndAnyUnicodePass) {
  const std::string text("a\0b \xF0\x9F\x98\x80 \"\\ \n", 14);
  EXPECT_EQ(render("{{ messages[0].content }}", chat({{{"role", "user"}, {"content", text}}})),
            text);
  const std::string source("x\0{{ 1 }}", 9);
  EXPECT_EQ(render(source), std::string("x\0"
                                        "1",
                                        3));
}

TEST(ChatTemplate, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(failure("x", chat({{{"role", "user"}, {"content", "\xFF"}}})).message,
              HasSubstr("cannot be written as JSON"));
  EXPECT_FALSE(ChatTemplate::create("\xFF", "", "").ok());
}

TEST(ChatTemplate, ContinuesTheFinalMessage) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  ChatTemplateInput input = chat(
      {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hi and "}}});
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_EQ(render(source, input), "<user>Hi</>\n<assistant>Hi and ");
  // A template that trims: so does the continued text.
  EXPECT_EQ(render("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}", input),
            "[Hi][Hi and");
  input.messages[1]["content"] = json::array(
      {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}, {{"type", "image"}}});
  EXPECT_EQ(render("{% for p in messages[1].content %}{{ p.text }};{% endfor %}", input), "a;b");
  input.messages[1]["content"] = "";
  EXPECT_EQ(render(source, input), "<user>Hi</>\n<assistant>");
}

TEST(ChatTemplate, ContinuingWhatCannotBeContinuedIsRefused) {
  ChatTemplateInput input = chat();
  input.continue_final_message = true;
  input.add_generation_prompt = true;
  EXPECT_THAT(failure("x", input).message, HasSubstr("exclude each other"));
  input.add_generation_prompt = false;
  EXPECT_THAT(failure("the content is not used", input).message, HasSubstr("cannot be continued"));
  input.messages[0]["content"] = nullptr;
  EXPECT_THAT(failure("x", input).message, HasSubstr("has no text"));
  input.messages = json::array();
  EXPECT_THAT(failure("x", input).message, HasSubstr("no message to continue"));
  input.messages = nullptr;
  EXPECT_THAT(failure("x", input).message, HasSubstr("no message to continue"));
}

TEST(ChatTemplate, HostileTemplatesRunOutOfFuel) {
  const std::string n = "{% set n = namespace(s='xy') %}{% for i in range(100) %}";
  for (const std::string& source : {
           std::string(
               "{% for a in range(90000) %}{% for b in range(90000) %}x{% endfor %}{% endfor %}"),
           n + "{% set n.s = n.s ~ n.s %}{% endfor %}",
           n + "{% set n.s = n.s + n.s %}{% endfor %}",
           n + "{% set n.s = n.s.replace('x', 'xx') %}{% endfor %}",
           n + "{% set n.s = n.s | replace('x', 'xx') %}{% endfor %}",
           n + "{% set n.s = n.s.join(n.s) %}{% endfor %}",
           std::string("{{ ('x' * 90000000) * 90 }}"),
           std::string("{% set s = 'x' * 1000000 %}{% for i in range(90000) %}{{ s }}{% endfor %}"),
       }) {
    EXPECT_THAT(failure(source).message, HasSubstr("does it loop?")) << source;
  }
}

// A list that holds one list twice, which holds another twice, and so on: small in memory, but
// 2^40 values to whoever walks it.
TEST(ChatTemplate, DeeplySharedValuesRunOutOfFuel) {
  const std::string dag =
      "{% set n = namespace(v=[1]) %}{% for i in range(40) %}{% set n.v = [n.v, n.v] %}{% endfor "
      "%}";
  for (const char* use : {"{{ n.v | tojson }}"}) {
    EXPECT_THAT(failure(dag + use).message, HasSubstr("does it loop?")) << use;
  }
}

TEST(ChatTemplate, RecursionIsBounded) {
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").message,
              HasSubstr("recursion"));
  std::thread([] {  // the stack of a thread that is not the first
    failure("{% macro m(x) %}{{ m([x]) }}{% endmacro %}{{ m(1) }}");
  })
      .join();
  const std::string open(5000, '(');
  EXPECT_FALSE(ChatTemplate::create("{{ " + open + "1", "", "").ok());
  EXPECT_FALSE(ChatTemplate::create(std::string(5 << 20, 'x'), "", "").ok());
  json deep = 1;
  for (int i = 0; i < 500; ++i) deep = json::array({deep});
  failure("x", chat(deep));
}

TEST(ChatTemplate, ManyThreadsMayShareOne) {
  const auto shared = make("{% for m in messages %}{{ m.content | upper }}{% endfor %}");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) EXPECT_EQ(*shared->render(chat()), "HI");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DefaultTemplates, ChatMl) {
  ChatTemplateInput input =
      chat({{{"role", "system"}, {"content", "S"}}, {{"role", "user"}, {"content", " Hi\n"}}});
  EXPECT_EQ(render(default_chat_template(true).source, input),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n Hi\n<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(DefaultTemplates, ABaseModelContinuesATranscript) {
  const json part = {{{"type", "text"}, {"text", "Hi "}}};
  ChatTemplateInput input = chat({{{"role", "system"}, {"content", "S"}},
                                  {{"role", "user"}, {"content", part}},
                                  {{"role", "assistant"}, {"content", "Hello"}},
                                  {{"role", "user"}, {"content", "Bye"}}});
  const DefaultTemplate base = default_chat_template(false);
  EXPECT_THAT(render(base.source, input), ::testing::StartsWith("<s>S\n\nQuestion: What is"));
  EXPECT_THAT(render(base.source, input),
              ::testing::EndsWith("\n\nQuestion: Hi\nAnswer: Hello\n\nQuestion: Bye\nAnswer:"));
  EXPECT_THAT(base.stops, ::testing::Contains("\nQuestion:"));
  input.messages.erase(3);
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_THAT(render(base.source, input), ::testing::EndsWith("Question: Hi\nAnswer: Hello"));
}

}  // namespace
}  // namespace wok
