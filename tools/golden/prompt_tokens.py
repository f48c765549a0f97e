"""Text to token ids, from a GGUF's own vocabulary.

The engine's tests take ids, so this only has to be right, not fast: byte-level BPE goes
to Hugging Face's `tokenizers`, SentencePiece is the plain quadratic merge.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

# Token types of tokenizer.ggml.token_type.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def byte_level_bpe(meta: dict[str, Any], text: str) -> list[int]:
    """The SmolLM pre-tokenizer (single digits, then GPT-2's pattern) and BPE."""
    if meta["tokenizer.ggml.pre"] != "smollm":
        raise SystemExit(f"pre-tokenizer '{meta['tokenizer.ggml.pre']}': expected smollm")
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    bpe = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.add_special_tokens(
        [AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == CONTROL]
    )
    return tokenizer.encode(text).ids


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
