"""Text to token ids, from a GGUF's own vocabulary.

The engine's tests take ids, so this only has to be right, not fast: byte-level BPE goes
to Hugging Face's `tokenizers`, SentencePiece is the plain quadratic merge.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

# Token types of tokenizer.ggml.token_type.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


# As published with the models: they differ in how many digits make a word.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def pre_tokenizer(pre: str) -> pre_tokenizers.PreTokenizer:
    """How the text is cut into the words that BPE works on."""
    if pre == "smollm":  # Single digits, then GPT-2's pattern.
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    if pre not in ("qwen2", "llama-bpe"):
        raise SystemExit(f"pre-tokenizer '{pre}': expected smollm, qwen2 or llama-bpe")
    pattern = WORDS.replace("DIGITS", r"\p{N}" if pre == "qwen2" else r"\p{N}{1,3}")
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, bytes_only])


def byte_level_bpe(meta: dict[str, Any], text: str) -> list[int]:
    """BPE over bytes, after the model's pre-tokenizer."""
    pre = meta["tokenizer.ggml.pre"]
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    # Llama 3 takes a word that is a token whole, whatever the merges say.
    bpe = models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama-bpe")
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizer(pre)
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(
        [AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == CONTROL]
    )
    bos = [meta["tokenizer.ggml.bos_token_id"]] if meta["tokenizer.ggml.add_bos_token"] else []
    return bos + tokenizer.encode(text).ids


def merge_by_score(text: str, scores: dict[str, float]) -> list[str]:
    """Joins the neighbours whose union scores highest, leftmost first, until none is known."""
    symbols = list(text)
    while len(symbols) > 1:
        unions = (a + b for a, b in zip(symbols, symbols[1:]))
        known = [(scores[union], -i) for i, union in enumerate(unions) if union in scores]
        if not known:
            break
        at = -max(known)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols


def sentencepiece(meta: dict[str, Any], text: str) -> list[int]:
    """Control and user-defined tokens whole, the rest merged; unknown characters as bytes."""
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    ids = {token: i for i, token in enumerate(tokens)}
    scored = zip(tokens, meta["tokenizer.ggml.scores"], types)
    scores = {token: score for token, score, kind in scored if kind == NORMAL}
    whole = {t for t, kind in zip(tokens, types) if kind in (CONTROL, USER_DEFINED)}
    longest_first = sorted(whole, key=len, reverse=True)

    out = [meta["tokenizer.ggml.bos_token_id"]] if meta["tokenizer.ggml.add_bos_token"] else []
    for part in re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text):
        if part in whole:
            out.append(ids[part])
            continue
        for symbol in merge_by_score(part.replace(" ", "\u2581"), scores):
            if symbol in ids:
                out.append(ids[symbol])
            else:
                out += [ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
    return out


def encode(meta: dict[str, Any], text: str) -> list[int]:
    """Ids of `text`, control tokens parsed, with a BOS where the model asks for one."""
    kind = meta["tokenizer.ggml.model"]
    if kind == "gpt2":
        return byte_level_bpe(meta, text)
    if kind == "llama":
        return sentencepiece(meta, text)
    raise SystemExit(f"tokenizer.ggml.model '{kind}': expected gpt2 or llama")
