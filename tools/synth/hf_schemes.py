"""How Hugging Face's world stores quantized linear modules, and safetensors files: GPTQ, AWQ,
compressed-tensors and FP8, each beside the weights that the bytes stand for.

Layouts: GPTQModel, AutoAWQ and compressed-tensors as /docs/formats.md names them.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray

SCHEMES = ("none", "float32", "gptq", "awq", "pack-quantized", "int-quantized", "fp8")
TYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8",
         "uint8": "U8"}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # nibble i of a word holds output ORDER[i]


@dataclass
class Typed:
    """Bytes that NumPy has no type for: BF16 and FP8."""

    kind: str
    data: Array


def bf16(x: Array) -> Typed:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return Typed("BF16", ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16))


def bf16_values(t: Typed) -> Array:
    return (t.data.astype(np.uint32) << 16).view(np.float32)


def e4m3_values() -> Array:
    """What the 256 codes of FP8 E4M3 mean."""
    out = np.empty(256, np.float32)
    for code in range(256):
        exponent, mantissa = code >> 3 & 15, code & 7
        value = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
        out[code] = np.nan if code & 0x7F == 0x7F else -value if code & 0x80 else value
    return out


def write_safetensors(path: str, tensors: dict[str, Any]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, value in tensors.items():
        data = value.data if isinstance(value, Typed) else value
        kind = value.kind if isinstance(value, Typed) else TYPES[str(data.dtype)]
        header[name] = {"dtype": kind, "shape": list(data.shape),
                        "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for value in tensors.values():
            data = value.data if isinstance(value, Typed) else value
            file.write(np.ascontiguousarray(data).tobytes())


def pack_stream(values: Array, bits: int, axis: int) -> Array:
    """Fields of `bits` bits along an axis into 32-bit words, the lowest first."""
    values = np.moveaxis(values, axis, -1)
    count = values.shape[-1]
    words = np.zeros((*values.shape[:-1], -(-count * bits // 32)), np.uint64)
    for i in range(count):
        at, shift = divmod(i * bits, 32)
        field = values[..., i].astype(np.uint64)
        words[..., at] |= field << np.uint64(shift) & np.uint64(0xFFFFFFFF)
        if shift + bits > 32:
            words[..., at + 1] |= field >> np.uint64(32 - shift)
    return np.moveaxis(words.astype(np.uint32).view(np.int32), -1, axis)


@dataclass
class Scheme:
    """How linear modules are stored."""

    name: str
    bits: int = 4
    group: int = 128  # -1: a whole row
    symmetric: bool = True
    act_order: bool = False
    version: int = 1  # of GPTQ's zero points
    block: int = 0  # FP8: rows and columns that share a factor; 0: a factor a row
    seed: int = 0
    orders: dict[int, Array] = field(default_factory=dict)

    def group_index(self, cols: int) -> Array:
        """The group of each input; with act-order a shuffled one, the same for equal widths."""
        plain = np.arange(cols) // (cols if self.group == -1 else self.group)
        if not self.act_order:
            return plain
        if cols not in self.orders:
            self.orders[cols] = np.random.default_rng(self.seed + cols).permutation(plain)
        return self.orders[cols]

    def quantize(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """Codes [O, K], scales and zeros [O, groups] and the group of each input."""
        rows, cols = w.shape
        index = self.group_index(cols)
        groups = int(index.max()) + 1
        codes = np.empty((rows, cols), np.uint8)
        scales = np.empty((rows, groups), np.float16)
        zeros = np.empty((rows, groups), np.uint8)
        top = 2**self.bits - 1
        for g in range(groups):
            columns = index == g
            if not self.act_order:  # a slice costs no copy
                first = g * (cols if self.group == -1 else self.group)
                columns = slice(first, first + int((index == g).sum()))
            part = w[:, columns]
            if self.symmetric:
                scale = 2 * np.abs(part).max(axis=1) / top
                zero = np.full(rows, 2 ** (self.bits - 1))
            else:
                low, high = np.minimum(part.min(axis=1), 0), np.maximum(part.max(axis=1), 0)
                scale = (high - low) / top
                zero = np.rint(-low / np.maximum(scale, 1e-8))
            scale = np.maximum(scale, 1e-6).astype(np.float16)
            scales[:, g], zeros[:, g] = scale, np.clip(zero, 0, top)
            q = np.rint(part / scale.astype(np.float32)[:, None]) + zeros[:, g, None]
            codes[:, columns] = np.clip(q, 0, top)
        return codes, scales, zeros, index

    def store(self, w: Array) -> tuple[dict[str, Any], Array]:
        """A module's tensors, and the weights that they stand for."""
        if self.name == "float32":
            return {"weight": w}, w
        if self.name == "none":
            t = bf16(w)
            return {"weight": t}, bf16_values(t)
        if self.name == "fp8":
            return self.store_fp8(w)
        codes, scales, zeros, index = self.quantize(w)
        value = scales.astype(np.float32)[:, index] * (
            codes.astype(np.float32) - zeros.astype(np.float32)[:, index])
        if self.name == "gptq":
            stored = zeros.astype(np.int64) - (1 if self.version == 1 else 0)
            # Whole words: a field may borrow from its neighbour.
            words = pack_zero_words(stored.T, self.bits)
            return {"qweight": pack_stream(codes.T, self.bits, 0), "qzeros": words,
                    "scales": np.ascontiguousarray(scales.T),
                    "g_idx": index.astype(np.int32)}, value
        if self.name == "awq":
            return {"qweight": pack_awq(codes.T), "qzeros": pack_awq(zeros.T),
                    "scales": np.ascontiguousarray(scales.T)}, value
        if self.name == "int-quantized":
            out = {"weight": (codes.astype(np.int16) - 128).astype(np.int8), "weight_scale": scales}
            return out, value
        out = {"weight_packed": pack_stream(codes, self.bits, 1), "weight_scale": scales,
               "weight_shape": np.array(w.shape, np.int64)}
        if not self.symmetric:
            out["weight_zero_point"] = pack_stream(zeros, self.bits, 0)
        if self.act_order:
            out["weight_g_idx"] = index.astype(np.int32)
        return out, value

    def store_fp8(self, w: Array) -> tuple[dict[str, Any], Array]:
        table = e4m3_values()
        block = (self.block, self.block) if self.block else (1, w.shape[1])
        shape = tuple(-(-n // b) for n, b in zip(w.shape, block))
        scale = np.empty(shape, np.float32)
        codes = np.empty(w.shape, np.uint8)
        value = np.empty_like(w)
        order = np.argsort(table[:0x7F])
        for i in range(shape[0]):
            for j in range(shape[1]):
                at = np.s_[i * block[0]:(i + 1) * block[0], j * block[1]:(j + 1) * block[1]]
                scale[i, j] = max(float(np.abs(w[at]).max()) / 448, 1e-8)
                size = np.abs(w[at] / scale[i, j])
                near = np.searchsorted(table[order], size)
                near = np.clip(near, 1, len(order) - 1)
                lower = np.abs(size - table[near - 1]) <= np.abs(size - table[near])
                code = np.where(lower, near - 1, near).astype(np.uint8)
                codes[at] = code | (np.signbit(w[at]).astype(np.uint8) << 7)
                value[at] = table[codes[at]] * scale[i, j]
        return {"weight": Typed("F8_E4M3", codes), "weight_scale_inv": scale}, value

    def config(self) -> dict[str, Any] | None:
        if self.name == "gptq":
            return {"quant_method": "gptq", "bits": self.bits, "group_size": self.group,
                    "desc_act": self.act_order, "sym": self.symmetric, "lm_head": False,
                    "checkpoint_format": "gptq" if self.version == 1 else "gptq_v2"}
        if self.name == "awq":
            return {"quant_method": "awq", "bits": 4, "group_size": self.group, "zero_point": True,
                    "version": "gemm", "modules_to_not_convert": None}
        if self.name in ("pack-quantized", "int-quantized"):
            weights = {"num_bits": self.bits, "type": "int", "symmetric": self.symmetric,
                       "strategy": "channel" if self.group == -1 else "group",
                       "group_size": None if self.group == -1 else self.group, "dynamic": False,
                       "actorder": "group" if self.act_order else None}
            return {"quant_method": "compressed-tensors", "format": self.name,
                    "quantization_status": "compressed", "ignore": ["lm_head"],
                    "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
        if self.name == "fp8":
            out = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
            return out | ({"weight_block_size": [self.block] * 2} if self.block else {})
        return None


def pack_zero_words(stored: Array, bits: int) -> Array:
    """[groups, O] zero points along O; -1 borrows, as arithmetic on whole words does."""
    if bits == 3:
        return pack_stream(stored & 7, 3, 1)
    per_word = 32 // bits
    fields = stored.reshape(stored.shape[0], -1, per_word)
    words = sum(fields[..., i] << (bits * i) for i in range(per_word))
    return (words & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def pack_awq(values: Array) -> Array:
    """[lines, O] along O, eight in a word in AWQ's order."""
    fields = values.reshape(values.shape[0], -1, 8).astype(np.uint32)
    words = sum(fields[..., AWQ_ORDER[i]] << np.uint32(4 * i) for i in range(8))
    return words.astype(np.uint32).view(np.int32)
