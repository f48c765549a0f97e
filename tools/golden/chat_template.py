#!/usr/bin/env python3
"""Makes tests/golden/chat_templates.json: chat templates rendered by transformers (Jinja2).

    chat_template.py OUT.json

Needs: pip install transformers jinja2

The templates are ours; they use what templates in the wild use. strftime_now is left out: its
result depends on the day. The chats' keys are sorted, since nlohmann::json, which wok's callers
build them with, keeps them so.
"""

import json
import sys

import jinja2
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

TOOLS = [{
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a \"city\" <now> & later, é",
        "parameters": {
            "type": "object",
            "properties": {
                "items": {"type": "array", "description": "a key named like a dict method"},
                "city": {"type": "string", "enum": ["Bern", "Zürich"]},
                "days": {"type": "integer", "default": 3, "minimum": 0.5, "maximum": 1e16},
            },
            "required": ["city"],
        },
    },
}]
CHAT = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "Hi <b>there</b> & 'you' \"all\" 😀"},
    {"role": "assistant", "content": "Hello!", "reasoning_content": "think\nhard"},
    {"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "image"},
                                 {"type": "text", "text": "part two"}]},
]
CALLS = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function",
         "function": {"name": "get_weather", "arguments": {"city": "Bern", "days": 2, "x": None,
                                                           "deep": [1, 2.5, True, {"a": []}]}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "{\"t\": 20}"},
]

CHAT, CALLS, TOOLS = (json.loads(json.dumps(x, sort_keys=True)) for x in (CHAT, CALLS, TOOLS))

TEMPLATES = {
    "plain": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    "blocks on own lines": """{{ bos_token }}
{%- for message in messages %}
    {%- if message['role'] == 'system' %}
<<SYS>>{{ message['content'] | trim }}<</SYS>>
    {% elif loop.last %}
LAST {{ message.role | upper }}
    {% else %}
  {{ loop.index0 }}/{{ loop.length }} {{ message.role }}
    {% endif %}
{%- endfor %}
{% if add_generation_prompt %}
<assistant>
{% endif %}
""",
    "tools": """{%- if tools is not none and tools %}
{%- for tool in tools %}
{{- tool | tojson }}
{{ tool.function | tojson(indent=4) }}
{%- for name, spec in tool.function.parameters.properties.items() %}
{{ name }}: {{ spec.type }}{{ ' (default ' ~ spec.default ~ ')' if spec.default is defined }}
{%- if spec.get('enum') %} one of {{ spec.enum | join(', ') }}{% endif %}
{%- endfor %}
{%- endfor %}
{%- endif %}
""",
    "tool calls": """{%- for m in messages -%}
{%- if m.tool_calls is defined and m.tool_calls -%}
{%- for call in m.tool_calls -%}
{%- set f = call.function if call.function is defined else call -%}
<call>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}</call>
{%- for k, v in f.arguments | items %}|{{ k }}={{ v if v is string else v | tojson }}{% endfor -%}
{%- endfor -%}
{%- elif m.role == "tool" -%}<result>{{ m.content }}</result>
{%- else -%}{{ m.role }}={{ m.content }};{%- endif -%}
{%- endfor -%}""",
    "content parts": """{%- macro show(content) -%}
{%- if content is string -%}{{ content }}
{%- elif content is iterable and content is not mapping -%}
{%- for part in content -%}
{%- if part.type == 'text' -%}{{ part['text'] }}{%- elif 'image' in part.type -%}<img>{%- endif -%}
{%- endfor -%}
{%- else -%}{{ '' }}{%- endif -%}
{%- endmacro -%}
{%- for m in messages -%}[{{ show(m.content) }}]{%- endfor -%}""",
    "namespace": """{%- set ns = namespace(last=-1, found=false, text='') -%}
{%- for m in messages[::-1] -%}
{%- set index = (messages | length - 1) - loop.index0 -%}
{%- if not ns.found and m.role == 'user' -%}
{%- set ns.last = index -%}{%- set ns.found = true -%}
{%- endif -%}
{%- set ns.text = ns.text + m.role[0] -%}
{%- endfor -%}
{{ ns.last }} {{ ns.found }} {{ ns.text }}""",
    "reasoning": """{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
{%- set thought = m.reasoning_content if m.reasoning_content is string else '' -%}
{%- set text = '<think>' + thought.strip('\\n') + '</think>' + m.content -%}
{{ text.split('</think>')[-1].lstrip('\\n') }}|{{ text.split('</think>')[0].rstrip('\\n').split('<think>')[-1] }}
{%- if '</think>' in text %}|in{% endif %}
{%- endif -%}
{%- endfor -%}
{%- if enable_thinking is defined and enable_thinking is false %}<think>

</think>{% endif -%}""",
    "string methods": """{%- set s = '  Hello, World  ' -%}
{{ s.strip() }}|{{ s.lower() }}|{{ s.upper() }}|{{ s.replace('l', 'L') }}|{{ s.startswith('  He') }}
|{{ s.endswith('x') }}|{{ s.strip().title() }}|{{ s.find('W') }}|{{ 'a,b,c'.split(',') }}|{{ s | length }}
|{{ '-'.join(['x', 'y']) }}|{{ 'abc'[1:] }}|{{ 'abc'[-1] }}|{{ 'ab' * 3 }}|{{ "%s is %d" | format('x', 3) }}
|{{ 'x'.removeprefix('x') }}|{{ 'abc'.removesuffix('bc') }}|{{ 'a\\nb'.splitlines() }}""",
    "values": """{{ none }} {{ true }} {{ false }} {{ 1 }} {{ 1.0 }} {{ [1, 'a', none, true] }} {{ {'k': 'v'} }}
{{ missing }}|{{ missing is defined }}|{{ missing | default('d') }}|{{ 'x' in [] }}|{{ 7 // 2 }} {{ 7 / 2 }} {{ 7 % 3 }} {{ 2 ** 3 }}
{{ 'a' ~ 1 ~ none ~ true }}|{{ (1, 2) }}|{{ {} }}|{{ [] }}|{{ "it's" }}|{{ ["it's", 'q"q'] }}""",
    "filters": """{{ messages | map(attribute='role') | list | tojson }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}
{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | join('+') }}
{{ [3, 1, 2] | sort | join }} {{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ 'a b' | replace(' ', '_') }}
{{ {'b': 1, 'a': 2} | dictsort | list }} {{ 'x' | string }} {{ '5' | int + 1 }} {{ [1, 2] | sum }} {{ 'abc' | capitalize }}
{{ {'z': 1, 'a': [1, {'k': 'é'}]} | tojson }} {{ 'é' | tojson(ensure_ascii=true) }} {{ [0.1, 1e-5, 1e16, 100.0, -0.5] | tojson }}
{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }} {{ "\\n\\t\\"\\\\" | tojson }}""",
    "generation tags": """{%- for m in messages %}
{%- if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}
{%- else %}
{{ m.role }}
{%- endif %}
{%- endfor %}
{% generation %}
x
{%- endgeneration %}
y""",
    "loop control": """{% for m in messages %}{% if loop.index > 3 %}{% break %}{% endif %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }},{% endfor %}""",
    "raw and comments": "a{# comment #}b\n{#- trimmed -#}\nc{% raw %}{{ not }}{% endraw %}\n   {# own line #}\nd",
    "set block": "{% set x %}  inner {{ messages | length }} {% endset %}[{{ x }}][{{ x | trim }}]",
    "inline if without else": "[{{ 'yes' if messages | length > 100 }}]",
    "whitespace signs": "a  {%- if true -%}  b  {%- endif +%}\n  c\n    {%+ if true %}d{% endif %}\n\n\n",
    "trailing newline": "end\n",
}


def main():
    cases = []
    for name, template in TEMPLATES.items():
        for chat_name, messages, tools, kwargs in [
            ("chat", CHAT, None, {}),
            ("calls", CALLS, TOOLS, {"enable_thinking": False}),
        ]:
            try:
                rendered, _ = render_jinja_template(
                    [messages], tools=tools, chat_template=template, add_generation_prompt=True,
                    bos_token="<s>", eos_token="</s>", **kwargs)
                output = rendered[0]
            except (TypeError, jinja2.TemplateError) as error:  # wok must fail there too
                print(f"{name}, {chat_name}: {error}")
                output = None
            cases.append({"name": f"{name}, {chat_name}", "template": template,
                          "chat": chat_name, "output": output})
    golden = {
        "made_by": f"transformers {transformers.__version__}, Jinja2 {jinja2.__version__}",
        "chats": {"chat": {"messages": CHAT, "tools": None, "kwargs": {}},
                  "calls": {"messages": CALLS, "tools": TOOLS,
                            "kwargs": {"enable_thinking": False}}},
        "cases": cases,
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, indent=1, ensure_ascii=False)
        out.write("\n")
    print(f"{sys.argv[1]}: {len(cases)} renderings")


if __name__ == "__main__":
    main()
