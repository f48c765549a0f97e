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

// Instruct models bring their template, so a file without one holds a base model. It continues
// text; two examples make an answer the likeliest continuation (in-context learning, arXiv
// 2005.14165).
constexpr char kTranscript[] = WOK_CONTENT_MACRO R"({{- bos_token -}}
{%- for message in messages if message.role in ['system', 'developer'] -%}
{{- text_of(message.content) | trim + '\n\n' -}}
{%- endfor -%}
{{- 'Question: What is the capital of France?\nAnswer: The capital of France is Paris.\n\n' -}}
{{- 'Question: Name two animals that can fly.\n' -}}
{{- 'Answer: Two animals that can fly are the eagle and the bat.\n\n' -}}
{%- for message in messages if message.role not in ['system', 'developer'] -%}
{%- if message.role == 'assistant' -%}
{{- 'Answer: ' + text_of(message.content) | trim -}}
{{- '\n\n' -}}
{%- else -%}
{{- 'Question: ' + text_of(message.content) | trim + '\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Answer:' -}}{%- endif -%})";

#undef WOK_CONTENT_MACRO

}  // namespace

DefaultTemplate default_chat_template(bool has_chatml_tokens) {
  if (has_chatml_tokens) return {kChatMl, {}};
  return {kTranscript, {"\n\nQuestion:", "\nQuestion:"}};
}

}  // namespace wok
