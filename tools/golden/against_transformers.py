"""Golden logits by Hugging Face's transformers, and comparisons with them.

    python tools/golden/against_transformers.py make gemma2 tests/golden/hf_tiny_gemma2
    python tools/golden/against_transformers.py write FOLDER tests/golden/logits_NAME.json
    python tools/golden/against_transformers.py compare FOLDER tests/golden/logits_NAME.json

`make` writes a tiny folder with random weights as transformers itself names and stores them. A
folder made of a GGUF file (tools/synth/hf_folder.py --scheme float32) has that file's logits:
`--model` names the file, which the golden then identifies. transformers and torch are needed here
only, so they are not in requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

import numpy as np
import torch
import transformers

import make
from decoder import Cache
from prompts import TINY

# Small enough for a test: at most 120 KB in bfloat16.
SIZES = dict(vocab_size=192, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096,
             tie_word_embeddings=False, bos_token_id=0, eos_token_id=1, pad_token_id=1)

FAMILIES: dict[str, dict[str, Any]] = {
    "gemma2": dict(model_type="gemma2", head_dim=16, query_pre_attn_scalar=24, sliding_window=24,
                   attn_logit_softcapping=3.0, final_logit_softcapping=8.0, num_hidden_layers=4,
                   tie_word_embeddings=True),
    # The short divisors count: the context is the trained one.
    "phi3": dict(model_type="phi3", num_attention_heads=2, num_key_value_heads=1,
                 intermediate_size=48, original_max_position_embeddings=2048,
                 max_position_embeddings=2048, partial_rotary_factor=0.5,
                 rope_scaling={"rope_type": "longrope", "factor": 2.0,
                               "short_factor": [1.0, 1.1, 1.3, 1.7],
                               "long_factor": [2.0, 3.0, 4.0, 5.0]}),
    "gpt_oss": dict(model_type="gpt_oss", head_dim=16, sliding_window=24, num_local_experts=4,
                    num_experts_per_tok=2, intermediate_size=32, vocab_size=128,
                    rope_parameters={"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0,
                                     "beta_slow": 1.0, "truncate": False, "rope_theta": 150000.0,
                                     "original_max_position_embeddings": 128}),
}


class Oracle:
    """A folder's model in float32; decoder.Decoder's interface."""

    def __init__(self, folder: str):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager")
        self.model.eval()
        self.tokens: list[int] = []
        self.route_margin = 1.0
        self.routed = getattr(self.model.config, "num_experts_per_tok", None) or 0

    def forward(self, tokens: list[int], cache: Cache) -> np.ndarray:
        """Computes the whole sequence again: no cache of keys stands between it and the truth."""
        self.tokens = (self.tokens if cache.length else []) + tokens
        cache.length = len(self.tokens)
        options = {"output_router_logits": True} if self.routed else {}
        with torch.no_grad():
            out = self.model(torch.tensor([self.tokens]), use_cache=False, **options)
        self.route_margin = 1.0
        for logits in out.get("router_logits", None) or ():
            p = torch.softmax(logits[-1].float(), -1).sort(descending=True).values
            self.route_margin = min(self.route_margin, float(p[self.routed - 1] - p[self.routed]))
        return out.logits[0, -1].float().numpy()


def prompts(folder: str, vocabulary: int) -> list[tuple[str, str, list[int]]]:
    """Names, texts and ids: of texts where the folder has a tokenizer, else random ids."""
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        return [(name, text, tokenizer.encode(text).ids) for name, text in TINY]
    random = np.random.default_rng(7)
    return [(f"random_{n}", "", random.integers(2, vocabulary, n).tolist())
            for n in (1, 7, 30, 90, 300)]


def make_folder(family: str, folder: str, seed: int) -> None:
    settings = SIZES | FAMILIES[family]
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim > 1:  # a product is about as large as its input
                value.normal_(0, value.shape[-1] ** -0.5)
            else:  # norms, biases and sinks: anything but what they are at the start
                value.add_(torch.empty_like(value).uniform_(-0.25, 0.25))
            if name.startswith("lm_head"):  # logits as spread as a trained model's
                value.mul_(4)
    model.to(torch.bfloat16).save_pretrained(folder)
    path = os.path.join(folder, "generation_config.json")
    if os.path.exists(path):
        os.remove(path)


def write(folder: str, golden: str, model_file: str | None) -> None:
    oracle = Oracle(folder)
    vocabulary = oracle.model.config.vocab_size
    fixed = [i * (vocabulary - 1) // (make.FIXED - 1) for i in range(make.FIXED)]
    identity = model_file or os.path.join(folder, "model.safetensors")
    make.write(golden, {
        "version": 1,
        "model_name": os.path.splitext(os.path.basename(model_file or folder))[0],
        "model_sha256": make.sha256(identity),
        "model_bytes": os.path.getsize(identity),
        "architecture": oracle.model.config.model_type,
        "vocabulary": vocabulary,
        "reference": f"transformers {transformers.__version__} float32",
        "fixed_ids": fixed,
        "prompts": [{"name": name, "text": text, "tokens": ids, **make.golden(oracle, ids, fixed)}
                    for name, text, ids in prompts(folder, vocabulary)],
    })


def compare(folder: str, golden: str) -> float:
    """The largest difference of any recorded logit."""
    oracle = Oracle(folder)
    with open(golden, encoding="utf-8") as file:
        document = json.load(file)
    worst = 0.0
    for prompt in document["prompts"]:
        logits = oracle.forward(prompt["tokens"], Cache())
        for ids, wanted in ((prompt["top_ids"], prompt["top_logits"]),
                            (document["fixed_ids"], prompt["fixed_logits"])):
            worst = max(worst, float(np.abs(logits[ids] - np.array(wanted)).max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="a tiny folder with random weights")
    making.add_argument("family", choices=FAMILIES)
    making.add_argument("folder")
    making.add_argument("--seed", type=int, default=0)
    writing = commands.add_parser("write", help="a folder's golden")
    writing.add_argument("folder")
    writing.add_argument("golden", help="JSON file to write")
    writing.add_argument("--model", help="GGUF file that the folder was made of")
    comparing = commands.add_parser("compare", help="a folder's logits with a golden's")
    comparing.add_argument("folder")
    comparing.add_argument("golden")
    comparing.add_argument("--most", type=float, default=0.002, help="largest difference allowed")
    args = parser.parse_args()
    if args.command == "make":
        make_folder(args.family, args.folder, args.seed)
    elif args.command == "write":
        write(args.folder, args.golden, args.model)
    else:
        worst = compare(args.folder, args.golden)
        print(f"{args.golden}: {worst:.5f}")
        sys.exit(worst > args.most)


if __name__ == "__main__":
    main()
