#!/usr/bin/env python3
"""Makes a tokenizer golden: token ids of a nasty corpus, by implementations that are not wok's.

    tokenizer.py MODEL.gguf OUT.json [--model-name NAME]

Needs: pip install gguf tokenizers transformers llama-cpp-python

The ids are Hugging Face's: transformers' Gemma tokenizer, or byte-level BPE built the way the
model's published tokenizer.json has it. llama.cpp tokenizes
the same texts; where it differs, the case carries its ids and `disagreement` counts it. wok follows
Hugging Face there.

Each case: text, ids (control tokens are plain text), ids_parse_special; neither with BOS or EOS.
"""

import argparse
import json
import os
import sys

import gguf
import llama_cpp
import tokenizers
import transformers
from transformers.models.gemma.tokenization_gemma import GemmaTokenizer
from transformers.tokenization_utils_base import generate_merges

CORPUS = [
    ("empty", ""),
    ("one space", " "),
    ("word", "Hello"),
    ("sentence", "The quick brown fox jumps over the lazy dog."),
    ("leading space", " leading"),
    ("trailing space", "trailing "),
    ("both", "  both sides   "),
    ("space runs", "a  b   c    d     e      f"),
    ("spaces before newline", "end of line   \nnext   \n\n   indented"),
    ("40 spaces", "x" + " " * 40 + "y"),
    ("newlines", "one\ntwo\n\nthree\n\n\nfour\n\n\n\n\nfive"),
    ("40 newlines", "top" + "\n" * 40 + "bottom"),
    ("tabs", "\tone\t\ttwo\t\t\t\tthree \t four\t "),
    ("crlf", "line one\r\nline two\r\n\r\nline four\rmac\r\r"),
    ("only whitespace", " \n \t\n  \r\n "),
    ("digits", "0 1 12 123 1234 12345 1234567890 3.14159 1,000,000 -42 1e-10"),
    ("other digits", "\u0661\u0662\u0663 \u096a\u096b \uff11\uff12 \u00bd \u00b2\u00b3 \u2163 \u2460"),
    ("contractions", "I'm you're he's we've they'll I'd don't CAN'T 'tis rock'n'roll O'Neil's"),
    ("curly quotes", "\u201cIt\u2019s\u201d \u2018fine\u2019 \u2014 she said\u2026"),
    ("punctuation", "!!! ??? ... ;;; --- *** ### $$$ %%% &&& (((a))) [b] {c} <d> /e/ \\f\\ |g|"),
    ("url", "https://user:pw@example.com:8080/path/to/x.html?q=1&r=%20a+b#frag-2"),
    ("email", "first.last+tag@sub.example.co.uk, cc: <a@b.c>"),
    ("python", "def f(x: int = 0) -> str:\n    if x >= 10:\n        return f\"{x!r:>{w}}\"\n\n    return None  # done\n"),
    ("c", "#include <stdio.h>\nint main(void)\n{\n\tfor (int i = 0; i < 10; ++i) printf(\"%d\\n\", a[i]);\n\treturn 0;\n}\n"),
    ("json", "{\"key\": [1, 2.5, null, true], \"nested\": {\"a\": \"\\u00e9\\n\"}}"),
    ("html", "<table><tr><td>cell</td></tr></table><h1>Title</h1><b>x</b><br/><custom-tag>"),
    ("markdown", "# Head\n\n- item **bold** _it_\n  - sub\n\n```sh\n$ ls -la | wc -l\n```\n\n| a | b |\n|---|---|\n"),
    ("latin", "na\u00efve caf\u00e9 fa\u00e7ade \u00fcber Stra\u00dfe \u0152uvre \u00e6on \u0141\u00f3d\u017a \u010desk\u00fd"),
    ("combining", "e\u0301 a\u0300 n\u0303 o\u0308\u0304 Z\u0351\u036b\u0343\u036a\u0302a\u0337l\u0321g\u0322o\u0327"),
    ("greek and cyrillic", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u0436\u0438\u043a"),
    ("chinese", "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u8fd9\u662f\u4e00\u4e2a\u6d4b\u8bd5\u3002\u9f98\u9750\u9f49"),
    ("japanese", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3001\u30c6\u30b9\u30c8\u3067\u3059\u3002\uff76\uff80\uff76\uff85"),
    ("korean", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 \u1112\u1161\u11ab\u1100\u1173\u11af"),
    ("arabic", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u064e\u062a\u064e\u0628\u064e \u0644\u0627\u061f"),
    ("hebrew", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd"),
    ("thai", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e17\u0e14\u0e2a\u0e2d\u0e1a"),
    ("hindi", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f"),
    ("emoji", "\U0001f600\U0001f680 party \U0001f389\U0001f389\U0001f389!"),
    ("emoji zwj", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f44d\U0001f3fd \u2764\ufe0f \U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7"),
    ("mathematical", "\u2200x\u2208\u211d: x\u00b2 \u2265 0 \u27f9 \u222b\u2080^\u221e e\u207b\u02e3 dx \U0001d4d0\U0001d552"),
    ("box drawing", "\u250c\u2500\u2510\n\u2502x\u2502\n\u2514\u2500\u2518"),
    ("nbsp", "a\u00a0b \u00a0c\u00a0\u00a0d"),
    ("exotic spaces", "a\u2003b\u2009c\u3000d\u200be\u2028f\u2029g\u0085h\u180ei\u1680j\u202fk"),
    ("lone bom", "\ufeff"),
    ("bom text", "\ufeffwith bom"),
    ("bidi controls", "abc\u202edef\u202c\u2066x\u2069"),
    ("control bytes", "nul\x00bell\x07esc\x1b[31mred\x1b[0m del\x7f"),
    ("noncharacters", "\ufffd\ufffe\U0010ffff\ue000"),
    ("rare planes", "\U00012000\U00012001 \U00013000 \U0001f9ff \U000e0061 \U00020000\U0002a6d6"),
    ("literal sentencepiece space", "a\u2581b \u2581\u2581 c\u2581"),
    ("literal byte tokens", "<0x0A><0xFF> <0x41>"),
    ("alphabet characters", "\u0120the \u010a \u0100\u0143"),
    ("long word", "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft" * 3),
    ("one letter", "a" * 300),
    ("alternating", "aAbBcC1a2B3c" * 20),
    ("base64", "SGVsbG8sIFdvcmxkISBUaGlzIGlzIGEgdGVzdC4=/+aGk"),
    ("hex", "0xDEADBEEF deadbeef 4f2a-99c1-00ff"),
    ("camel", "getHTTPResponseCode parseXMLToJSON2 snake_case_name SCREAMING_CASE kebab-case"),
    ("mixed", " Mixed \u4e2d\u6587 and English\u3001123\u4e2a \u0442\u0435\u0441\u0442\U0001f600\tend\n"),
    ("chatml in content", "<|im_start|>user\nIgnore it<|im_end|>\n<|im_start|>assistant\n"),
    ("gemma turns in content", "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"),
    ("bos in content", "<bos>text<eos> <s>text</s> <|endoftext|><|begin_of_text|><unk><pad>"),
    ("half control tokens", "<|im_start <|im_end| > <start_of_turn <|im_start|"),
    ("control tokens and spaces", " <|im_end|>  <|im_end|> <end_of_turn>  x <end_of_turn> "),
    ("repeated control", "<|im_end|><|im_end|><eos><eos><unused0><unused99><mask>[multimodal]"),
]


def byte_level(fields):
    """The published tokenizer of byte-level models: what tokenizer.json has for this pre."""
    pres = {
        "smollm": lambda t: t.pre_tokenizers.Sequence(
            [t.pre_tokenizers.Digits(individual_digits=True),
             t.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]),
        "gpt-2": lambda t: t.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    }
    pre = fields["pre"]
    if pre not in pres:
        sys.exit(f"this script does not know the published pre-tokenizer of '{pre}'; add it")
    vocabulary = {token: index for index, token in enumerate(fields["tokens"])}
    merges = [tuple(merge.split(" ")) for merge in fields["merges"]]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pres[pre](tokenizers)
    kinds = fields["token_type"]
    tokenizer.add_special_tokens([
        tokenizers.AddedToken(token, normalized=False, special=True)
        for token, kind in zip(fields["tokens"], kinds) if kind == 3])
    tokenizer.add_tokens([
        tokenizers.AddedToken(token, normalized=False)
        for token, kind in zip(fields["tokens"], kinds) if kind == 4])
    return tokenizer, f"tokenizers {tokenizers.__version__}, built as the published tokenizer.json"


def gemma(fields):
    """transformers' Gemma tokenizer over this vocabulary, merges derived by transformers.

    The steps are those of its GGUF loader, which itself needs a whole PyTorch to be imported: runs
    of spaces are spelled with U+2581, and a token's place in the file is its rank.
    """
    tokens = ["\u2581" * len(t) if " " in t and not t.strip() else t for t in fields["tokens"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    ranks = {token: -index for index, token in enumerate(tokens)}
    wrapped = GemmaTokenizer(vocab=vocabulary, merges=generate_merges(vocabulary, ranks))
    kinds = fields["token_type"]
    wrapped.add_special_tokens({"additional_special_tokens": [
        tokenizers.AddedToken(token, normalized=False, special=True)
        for token, kind in zip(tokens, kinds) if kind == 3]}, replace_extra_special_tokens=False)
    wrapped.add_tokens([
        tokenizers.AddedToken(token, normalized=False)
        for token, kind in zip(tokens, kinds) if kind == 4 and token.strip("\u2581")])
    return wrapped.backend_tokenizer, (
        f"transformers {transformers.__version__} GemmaTokenizer, "
        f"tokenizers {tokenizers.__version__}")


def encode(tokenizer, text, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    return tokenizer.encode(text, add_special_tokens=False).ids


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("model")
    arguments.add_argument("out")
    arguments.add_argument("--model-name", default="")
    options = arguments.parse_args()

    reader = gguf.GGUFReader(options.model)
    prefix = "tokenizer.ggml."
    fields = {key[len(prefix):]: field.contents()
              for key, field in reader.fields.items() if key.startswith(prefix)}
    if fields["model"] == "gpt2":
        tokenizer, made_by = byte_level(fields)
    else:
        architecture = reader.fields["general.architecture"].contents()
        if not architecture.startswith("gemma"):
            sys.exit(f"this script does not know the published tokenizer of '{architecture}'; add it")
        tokenizer, made_by = gemma(fields)
    other = llama_cpp.Llama(model_path=options.model, vocab_only=True, verbose=False)

    cases = []
    disagreements = 0
    for name, text in CORPUS:
        case = {"name": name, "text": text}
        for key, parse_special in [("ids", False), ("ids_parse_special", True)]:
            case[key] = encode(tokenizer, text, parse_special)
            theirs = other.tokenize(text.encode(), add_bos=False, special=parse_special) if text else []
            if theirs != case[key]:
                disagreements += 1
                case["llama_cpp_" + key] = theirs
        cases.append(case)

    head = {
        "model": options.model_name or os.path.basename(options.model),
        "made_by": made_by,
        "checked_with": f"llama-cpp-python {llama_cpp.__version__}",
        "disagreements_with_llama_cpp": disagreements,
        "vocab_size": len(fields["tokens"]),
    }
    with open(options.out, "w", encoding="utf-8") as out:
        out.write(json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n')
        out.write(",\n".join("  " + json.dumps(case) for case in cases))
        out.write("\n ]\n}\n")
    print(f"{options.out}: {len(cases)} texts, {disagreements} lists differ from llama.cpp's")


if __name__ == "__main__":
    main()
