"""A tokenizer of the right size for a model without its tokenizer: byte-level BPE that knows the
256 bytes and a few English words, special tokens with the ids they have in the real model, and
filler up to its vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import gguf

from shapes import Shape

WORDS = ("the of and to in is that for it was on are as with be at by this have from or one had "
         "not but what all were when we there can an your which their").split()

# ChatML and Llama 3's format, cut down to what a benchmark needs.
CHATML = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
HEADERS = (
    "{%- macro head(role) -%}"
    "{{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' -}}"
    "{%- endmacro -%}"
    "{{- bos_token -}}"
    "{%- for message in messages -%}"
    "{{- head(message.role) + message.content + '<|eot_id|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- head('assistant') -}}{%- endif -%}"
)


@dataclass(frozen=True)
class Family:
    pre: str  # tokenizer.ggml.pre
    specials: tuple[str, ...]  # Consecutive ids from Shape.first_special.
    bos: str
    eos: str
    pad: str
    add_bos: bool
    chat_template: str


FAMILIES = {
    "smollm": Family("smollm", ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
                     "<|im_start|>", "<|im_end|>", "<|im_end|>", False, CHATML),
    "qwen": Family("qwen2", ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
                   "<|endoftext|>", "<|im_end|>", "<|endoftext|>", False, CHATML),
    "llama3": Family(
        "llama-bpe",
        ("<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
         "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
         "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>",
         "<|eom_id|>", "<|eot_id|>"),
        "<|begin_of_text|>", "<|eot_id|>", "<|finetune_right_pad_id|>", True, HEADERS),
}


def byte_tokens() -> list[str]:
    """GPT-2's spelling of the 256 bytes: printable ones as they are, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(b) if b in printable else chr(next(hidden)) for b in range(256)]


def merges(limit: int) -> list[tuple[str, str]]:
    """At most `limit` merges that build WORDS, with a space in front, from left to right."""
    space = byte_tokens()[ord(" ")]
    out: list[tuple[str, str]] = []
    for word in WORDS:
        left = space
        for letter in word:
            if (left, letter) not in out:
                out.append((left, letter))
            left += letter
    return out[:limit]


def write_tokenizer(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """Adds the tokenizer's keys. Filler tokens are text, so that an answer of them can be seen."""
    family = FAMILIES[shape.tokenizer]
    room = shape.vocabulary - 256 - len(family.specials)
    pairs = merges(room)
    texts = iter(byte_tokens() + [left + right for left, right in pairs])
    ids = {text: shape.first_special + i for i, text in enumerate(family.specials)}
    special = {i: text for text, i in ids.items()}
    space = byte_tokens()[ord(" ")]
    tokens, kinds = [], []
    for i in range(shape.vocabulary):
        tokens.append(special[i] if i in special else next(texts, f"{space}w{i}"))
        kinds.append(gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL)
    if next(texts, None) is not None:
        raise SystemExit(f"{shape.vocabulary} tokens do not hold 256 bytes and the specials")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(family.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_bos_token_id(ids[family.bos])
    writer.add_eos_token_id(ids[family.eos])
    writer.add_pad_token_id(ids[family.pad])
    writer.add_add_bos_token(family.add_bos)
    writer.add_chat_template(family.chat_template)
