"""Writes golden logits of one GGUF model, for the engine's tests to compare with.

    python tools/golden/make.py MODEL.gguf tests/golden/logits_NAME.json

See README.md beside this file for the fields and for the tolerances they are meant for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np

from decoder import Cache, Decoder
from prompt_tokens import encode
from prompts import prompts_for

TOP = 20
CONTINUATION = 16
FIXED = 16


def sha256(path: str) -> str:
    """Identifies the exact file, since another quantization has other logits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rounded(values: Any) -> list[float]:
    """Five decimals: finer than any tolerance, and small enough to keep in the tree."""
    return [round(float(value), 5) for value in values]


def golden(decoder: Decoder, tokens: list[int], fixed_ids: list[int]) -> dict[str, Any]:
    """Logits after the prompt, then a greedy continuation with its margins.

    The continuation does not stop at an end token: the test runs a fixed number of steps.
    """
    cache = Cache()
    logits = decoder.forward(tokens, cache)
    # Stable, so that equal logits order by id on every machine.
    top = np.argsort(-logits, kind="stable")[:TOP]
    out: dict[str, Any] = {
        "top_ids": [int(i) for i in top],
        "top_logits": rounded(logits[top]),
        "fixed_logits": rounded(logits[fixed_ids]),
        "route_margin": round(decoder.route_margin, 5),
    }
    chosen: list[int] = []
    margins: list[float] = []
    while True:
        first, second = np.argsort(-logits, kind="stable")[:2]
        chosen.append(int(first))
        margins.append(logits[first] - logits[second])
        if len(chosen) == CONTINUATION:
            break
        logits = decoder.forward([int(first)], cache)
    out["continuation"] = chosen
    out["margins"] = rounded(margins)
    return out


def write(path: str, document: dict[str, Any]) -> None:
    """One prompt field a line: a regenerated file then has a readable diff."""
    prompts = document.pop("prompts")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("{\n")
        for key, value in document.items():
            file.write(f' "{key}": {json.dumps(value)},\n')
        file.write(' "prompts": [\n')
        for i, prompt in enumerate(prompts):
            lines = [f'   "{key}": {json.dumps(value)}' for key, value in prompt.items()]
            comma = "," if i + 1 < len(prompts) else ""
            file.write("  {\n" + ",\n".join(lines) + "\n  }" + comma + "\n")
        file.write(" ]\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file of a model that decoder.py knows")
    parser.add_argument("output", help="JSON file to write")
    args = parser.parse_args()

    decoder = Decoder(args.model)
    vocabulary = len(decoder.output)
    # Evenly spread, with both ends of the vocabulary.
    fixed_ids = [i * (vocabulary - 1) // (FIXED - 1) for i in range(FIXED)]
    prompts = []
    for name, text in prompts_for(decoder.settings.architecture, vocabulary):
        tokens = encode(decoder.meta, text)
        start = time.perf_counter()
        result = golden(decoder, tokens, fixed_ids)
        seconds = time.perf_counter() - start
        print(f"{name:14} {len(tokens):4} tokens  {seconds:6.2f} s", file=sys.stderr)
        prompts.append({"name": name, "text": text, "tokens": tokens, **result})
    write(
        args.output,
        {
            "version": 1,
            "model_name": decoder.meta["general.name"],
            "model_sha256": sha256(args.model),
            "model_bytes": os.path.getsize(args.model),
            "architecture": decoder.settings.architecture,
            "vocabulary": vocabulary,
            "reference": f"numpy {np.__version__} float32, gguf {version('gguf')} dequantization",
            "fixed_ids": fixed_ids,
            "prompts": prompts,
        },
    )


if __name__ == "__main__":
    main()
