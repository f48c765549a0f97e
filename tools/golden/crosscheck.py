"""Compares a golden file with llama.cpp, a third implementation, and prints how far apart.

    python tools/golden/crosscheck.py MODEL.gguf tests/golden/logits_NAME.json

llama.cpp quantizes activations to 8 bits, so it differs by more than rounding. What this
shows is that both read the same model: a wrong rotary pairing or window would be far off.
"""

from __future__ import annotations

import argparse
import json
import sys

import llama_cpp
import numpy as np


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file the golden was made from")
    parser.add_argument("golden", help="JSON file written by make.py")
    args = parser.parse_args()
    with open(args.golden, encoding="utf-8") as file:
        golden = json.load(file)

    # Float32 keys and values and a full batch, to leave quantized activations as the only
    # intended difference.
    llama = llama_cpp.Llama(
        args.model,
        n_ctx=1024,
        n_batch=1024,
        n_ubatch=1024,
        n_threads=2,
        logits_all=False,
        verbose=False,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
    )
    print(
        f"{'prompt':14} {'tokens':>6} {'ids':>4} {'top20 max':>9} {'top20 mean':>10} "
        f"{'fixed max':>9} {'cos top20':>9} {'cos fixed':>9} {'shared':>6} greedy"
    )
    failed = False
    for prompt in golden["prompts"]:
        tokens = prompt["tokens"]
        # BOS is added where the file asks for it.
        ids = llama.tokenize(prompt["text"].encode(), add_bos=True, special=True)
        same_ids = ids == tokens
        llama.reset()
        llama.eval(tokens)

        def last() -> np.ndarray:
            pointer = llama_cpp.llama_get_logits_ith(llama.ctx, -1)
            return np.ctypeslib.as_array(pointer, shape=(golden["vocabulary"],)).copy()

        logits = last()
        want, got = np.array(prompt["top_logits"]), logits[prompt["top_ids"]]
        want_fixed, got_fixed = np.array(prompt["fixed_logits"]), logits[golden["fixed_ids"]]
        shared = len(set(np.argsort(-logits)[:20]) & set(prompt["top_ids"]))
        greedy = "all 16 agree"
        for step, (token, margin) in enumerate(zip(prompt["continuation"], prompt["margins"])):
            if int(np.argmax(logits)) != token:
                greedy = f"differs at {step}, margin {margin:.3f}"
                break
            llama.eval([token])
            logits = last()
        failed |= not same_ids
        print(
            f"{prompt['name']:14} {len(tokens):6} {'same' if same_ids else 'DIFF':>4} "
            f"{np.abs(want - got).max():9.4f} {np.abs(want - got).mean():10.4f} "
            f"{np.abs(want_fixed - got_fixed).max():9.4f} {cosine(want, got):9.6f} "
            f"{cosine(want_fixed, got_fixed):9.6f} {shared:6} {greedy}"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
