#include "text/chat_template.h"

namespace wok {

namespace {

// Content is a string, or OpenAI's list of parts, of which these templates take the text.
#define WOK_CONTENT_MACRO                                                           \
  "{%- macro text_of(content) -%}"                                                  \
  "{%- if content is string -%}{{ content }}"                                       \
  "{%- elif content is iterable and content is not mapping -%}"                     \
  "{%- for part in content if part.type == 'text' -%}{{ part.text }}{%- endfor -%}" \
  "{%- endif -%}"                                                                   \
  "{%- endmacro -%}"

// <|im_start|>role\ntext<|im_end|>\n, as Qwen, SmolLM and many fine-tunes were trained on.
constexpr char kChatMl[] = WOK_CONTENT_MACRO R"({%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' -}}
{{- text_of(message.content) -}}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%})";

// Gemma has no system turn: system text goes before the first user's. Turns are trimmed.
constexpr char kGemma[] = WOK_CONTENT_MACRO R"({{- bos_token -}}
{%- set state = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role in ['system', 'developer'] -%}
{%- set state.system = state.system + text_of(message.content) | trim + '\n\n' -%}
{%- else -%}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' -}}
{%- if message.role == 'user' -%}{{- state.system -}}{%- set state.system = '' -%}{%- endif -%}
{{- text_of(message.content) | trim -}}
{{- '<end_of_turn>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%})";

#undef WOK_CONTENT_MACRO

}  // namespace

std::string default_chat_template(const std::string& architecture, bool has_chatml_tokens) {
  if (has_chatml_tokens) return kChatMl;
  if (architecture == "gemma" || architecture == "gemma2" || architecture == "gemma3") {
    return kGemma;
  }
  return "";
}

}  // namespace wok
