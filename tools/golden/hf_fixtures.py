"""Writes the small Hugging Face folders of tests/golden/hf, one a way to store weights, and the
digests of the weights that each stands for.

    python tools/golden/hf_fixtures.py tests/golden/hf
    python tools/golden/hf_fixtures.py tests/golden/hf --check

The weights come from NumPy (tools/synth/hf_schemes.py), not from wok. `--check` needs torch and
compressed-tensors, writes nothing, and has that package decompress its own formats: they must give
the same digests.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from typing import Any

import numpy as np
import xxhash

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "synth"))
from hf_schemes import Scheme, bf16, write_safetensors  # noqa: E402

WIDTH, FEED_FORWARD, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 64, 96, 2, 1, 32, 32
MODULES = {
    "self_attn.q_proj": ("attn_q", HEADS * HEAD_DIM, WIDTH),
    "self_attn.k_proj": ("attn_k", KV_HEADS * HEAD_DIM, WIDTH),
    "self_attn.v_proj": ("attn_v", KV_HEADS * HEAD_DIM, WIDTH),
    "self_attn.o_proj": ("attn_output", WIDTH, HEADS * HEAD_DIM),
    "mlp.gate_proj": ("ffn_gate", FEED_FORWARD, WIDTH),
    "mlp.up_proj": ("ffn_up", FEED_FORWARD, WIDTH),
    "mlp.down_proj": ("ffn_down", WIDTH, FEED_FORWARD),
}


def scheme(name: str, **more: Any) -> Scheme:
    return Scheme(name, **({"group": 64} | more))


# Groups of 64: whole rows of 64 inputs, and a short last group where there are 96.
CASES: dict[str, tuple[Scheme, dict[str, Any]]] = {
    "bf16": (scheme("none"), {"shards": 2, "layers": 2}),
    "gptq4_v1": (scheme("gptq"), {}),
    "gptq4_v2": (scheme("gptq", version=2), {}),
    "gptq4_mislabelled": (scheme("gptq", version=2), {"says": "gptq"}),
    "gptq4_act_order": (scheme("gptq", group=32, act_order=True), {}),
    "gptq4_asymmetric": (scheme("gptq", symmetric=False), {}),
    "gptq4_row": (scheme("gptq", group=-1), {}),
    "gptq2": (scheme("gptq", bits=2), {}),
    "gptq3": (scheme("gptq", bits=3), {}),
    "gptq3_asymmetric": (scheme("gptq", bits=3, symmetric=False, version=2), {}),
    "gptq8": (scheme("gptq", bits=8), {}),
    "awq": (scheme("awq", group=32, symmetric=False), {}),
    # compressed-tensors itself takes whole groups only.
    "packed4": (scheme("pack-quantized", group=-1), {}),
    "packed4_asymmetric": (scheme("pack-quantized", group=32, symmetric=False), {}),
    "packed4_act_order": (scheme("pack-quantized", group=32, act_order=True), {}),
    "packed3": (scheme("pack-quantized", bits=3, group=32), {}),
    "packed8": (scheme("pack-quantized", bits=8, group=32), {}),
    "packed8_asymmetric": (scheme("pack-quantized", bits=8, group=32, symmetric=False), {}),
    "int8": (scheme("int-quantized", bits=8, group=-1), {}),
    "fp8_rows": (scheme("fp8"), {}),
    "fp8_blocks": (scheme("fp8", block=32), {}),
    # q and k as they were, v quantized; gate quantized, up not.
    "mixed": (scheme("pack-quantized", group=32), {"keep": ["q_proj", "k_proj", "up_proj"]}),
}


def config(quantization: dict[str, Any] | None, layers: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
        "intermediate_size": FEED_FORWARD, "num_hidden_layers": layers, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": VOCABULARY,
        "tie_word_embeddings": True, "hidden_act": "silu", "torch_dtype": "bfloat16",
    }
    return out if quantization is None else out | {"quantization_config": quantization}


def digest(weights: np.ndarray) -> str:
    """Of the numbers: the sign of a zero does not count."""
    return xxhash.xxh3_64((np.ascontiguousarray(weights, np.float32) + 0.0).tobytes()).hexdigest()


def write_case(folder: str, how: Scheme, more: dict[str, Any]) -> dict[str, str]:
    """One folder; the digest of each matrix, by GGUF's names."""
    random = np.random.default_rng(5)
    keep = more.get("keep", [])
    tensors: dict[str, Any] = {}
    digests: dict[str, str] = {}
    layers = more.get("layers", 1)
    for i, (name, (short, rows, cols)) in itertools.product(range(layers), MODULES.items()):
        w = (random.normal(0, 1, (rows, cols)) / np.sqrt(cols)).astype(np.float32)
        if not how.symmetric:
            w[:8] = np.abs(w[:8])  # zero points of 0, which GPTQ's first version stores as -1
        kept = any(k in name for k in keep)
        stored, value = (Scheme("none") if kept else how).store(w)
        tensors |= {f"model.layers.{i}.{name}.{part}": t for part, t in stored.items()}
        digests[f"blk.{i}.{short}.weight"] = digest(value)
    for i, name in itertools.product(range(layers), ("input_layernorm",
                                                     "post_attention_layernorm")):
        tensors[f"model.layers.{i}.{name}.weight"] = bf16(random.uniform(0.75, 1.25, WIDTH))
    tensors["model.norm.weight"] = bf16(random.uniform(0.75, 1.25, WIDTH))
    tensors["model.embed_tokens.weight"] = bf16(random.normal(0, 1, (VOCABULARY, WIDTH)))
    quantization = how.config()
    if "says" in more:
        quantization["checkpoint_format"] = more["says"]
    if keep:
        quantization["ignore"] += [f"re:.*{name}" for name in keep]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config(quantization, layers), file, indent=1)
        file.write("\n")
    write_shards(folder, tensors, more.get("shards", 1))
    return digests


def write_shards(folder: str, tensors: dict[str, Any], shards: int) -> None:
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return
    names = sorted(tensors)
    weight_map = {}
    for i in range(shards):
        file_name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        write_safetensors(os.path.join(folder, file_name), {n: tensors[n] for n in names[i::shards]})
        weight_map |= {n: file_name for n in names[i::shards]}
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file, indent=1)
        file.write("\n")


def check_case(folder: str, wanted: dict[str, str]) -> int:
    """What the package compressed-tensors makes of its own formats. Returns the matrices compared."""
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from safetensors.torch import load_file

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        quantization = json.load(file).get("quantization_config", {})
    if quantization.get("quant_method") != "compressed-tensors":
        return 0
    group = quantization["config_groups"]["group_0"]
    if group["weights"].get("actorder") == "group":
        return 0  # the package no longer reads it; checkpoints of before are still there
    args = QuantizationArgs(**group["weights"])
    compressor = BaseCompressor.load_from_registry(quantization["format"])
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    compared = 0
    for name, (short, _, _) in MODULES.items():
        prefix = f"model.layers.0.{name}."
        parts = {n[len(prefix):]: t for n, t in tensors.items() if n.startswith(prefix)}
        if set(parts) == {"weight"} and parts["weight"].dtype == torch.bfloat16:
            continue
        # In float32, as wok has them; by itself the package would round to the scales' type.
        parts["weight_scale"] = parts["weight_scale"].float()
        out = compressor.decompress(parts, QuantizationScheme(targets=["Linear"], weights=args))
        got = digest(out["weight"].float().numpy())
        if got != wanted[f"blk.0.{short}.weight"]:
            raise SystemExit(f"{folder}: {name} is another matrix by compressed-tensors")
        compared += 1
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    digests_path = os.path.join(args.folder, "digests.json")
    if args.check:
        with open(digests_path, encoding="utf-8") as file:
            digests = json.load(file)
        for name in CASES:
            compared = check_case(os.path.join(args.folder, name), digests[name])
            print(f"{name}: {compared} matrices equal")
        return
    digests = {name: write_case(os.path.join(args.folder, name), how, more)
               for name, (how, more) in CASES.items()}
    with open(digests_path, "w", encoding="utf-8") as file:
        json.dump(digests, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
