"""The experts of a GPT-OSS folder: all of a layer in one tensor, rows of gate and up in turn."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np

Array = np.ndarray


def interleaved(gate: Array, up: Array) -> Array:
    """Rows of both in turn."""
    return np.stack([gate, up], axis=2).reshape(gate.shape[0], -1, *gate.shape[2:])


def mxfp4_blocks(tensor: gguf.ReaderTensor, experts: int, cols: int) -> tuple[Array, Array]:
    """GGUF's blocks, split halves, as [experts, rows, groups, 16] of neighbours, and scales."""
    data = tensor.data.reshape(experts, -1, cols // 32, 17)
    nibbles = np.concatenate([data[..., 1:] & 15, data[..., 1:] >> 4], axis=-1)
    return nibbles[..., 0::2] | nibbles[..., 1::2] << 4, data[..., 0]


def fused_experts(tensors: dict[str, gguf.ReaderTensor], layer: int,
                  weights: dict[str, Array], floats: bool) -> dict[str, Any]:
    """By Hugging Face's names: floats with inputs before outputs, or MXFP4 where they are."""
    prefix = f"model.layers.{layer}.mlp.experts."
    gate, up, down = (f"blk.{layer}.ffn_{n}_exps" for n in ("gate", "up", "down"))
    out = {prefix + "gate_up_proj_bias": interleaved(weights[gate + ".bias"],
                                                     weights[up + ".bias"]),
           prefix + "down_proj_bias": weights[down + ".bias"]}
    if floats:
        both = interleaved(weights[gate + ".weight"], weights[up + ".weight"])
        out[prefix + "gate_up_proj"] = np.ascontiguousarray(both.swapaxes(1, 2))
        out[prefix + "down_proj"] = np.ascontiguousarray(
            weights[down + ".weight"].swapaxes(1, 2))
        return out
    blocks = {n: mxfp4_blocks(tensors[n + ".weight"], len(weights[n + ".weight"]),
                              weights[n + ".weight"].shape[-1]) for n in (gate, up, down)}
    for i, part in enumerate(("blocks", "scales")):
        out[prefix + "gate_up_proj_" + part] = interleaved(blocks[gate][i], blocks[up][i])
        out[prefix + "down_proj_" + part] = np.ascontiguousarray(blocks[down][i])
    return out
