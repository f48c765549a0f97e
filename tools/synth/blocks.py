"""Random weights, made in the bytes of their type.

Any byte pattern is a valid block, so nothing is quantized: the codes are random bytes, and only
the scales are chosen, such that weights have mean 0 and the wanted root mean square. A gigabyte
takes a second or two.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True)
class Block:
    """Where a block's scales lie, as byte offsets, and what its codes alone amount to."""

    unit: float  # Root mean square of a weight when d is 1.
    scale_at: int = 0  # f16 d.
    min_at: int = -1  # f16 m, or dmin of the K types.
    min: float = 0  # m as a multiple of d: takes the mean out.
    signed: bool = False  # d has a random sign, which takes the mean out where there is no m.
    k_scales_at: int = -1  # 12 bytes of 6-bit scales and minima.


SIX_BITS = np.arange(64)
SIGNED_BYTES = np.arange(-127, 128)

BLOCKS = {
    Type.Q4_0: Block(rms(np.arange(16) - 8), signed=True),
    Type.Q4_1: Block(rms(np.arange(16) - 7.5), min_at=2, min=-7.5),
    Type.Q5_0: Block(rms(np.arange(32) - 16), signed=True),
    Type.Q5_1: Block(rms(np.arange(32) - 15.5), min_at=2, min=-15.5),
    Type.Q8_0: Block(rms(SIGNED_BYTES)),
    Type.Q4_K: Block(rms(SIX_BITS) * rms(np.arange(16) - 7.5), min_at=2, min=7.5, k_scales_at=4),
    Type.Q5_K: Block(rms(SIX_BITS) * rms(np.arange(32) - 15.5), min_at=2, min=15.5, k_scales_at=4),
    Type.Q6_K: Block(rms(SIGNED_BYTES) * rms(SIX_BITS - 32), scale_at=208),
}

# Where f16 d lies in the other types, all of them with a random sign of d. What their random codes
# amount to is measured.
OTHERS = {
    Type.Q2_K: 80, Type.Q3_K: 108, Type.TQ1_0: 52, Type.TQ2_0: 64, Type.IQ1_S: 0, Type.IQ2_XXS: 0,
    Type.IQ2_XS: 0, Type.IQ2_S: 0, Type.IQ3_XXS: 0, Type.IQ3_S: 0, Type.IQ4_NL: 0, Type.IQ4_XS: 0,
}
E4M3_BIAS = 7


def _measured(kind: Type, scale_at: int) -> Block:
    block_bytes = gguf.GGML_QUANT_SIZES[kind][1]
    sample = random_bytes(generator(0, kind.name), 512 * block_bytes).reshape(512, block_bytes)
    sample[:, scale_at:scale_at + 2] = _halves(np.ones(1))
    if kind == Type.Q2_K:
        sample[:, 82:84] = _halves(np.full(1, 1.5))
    unit = rms(gguf.quants.dequantize(sample, kind))
    return Block(unit, scale_at=scale_at, signed=True, min_at=82 if kind == Type.Q2_K else -1,
                 min=1.5)


def _with_small_scales(kind: Type, out: np.ndarray, spread: float) -> np.ndarray:
    """The types without an f16 d of their own: a power of two, or an E4M3 number, near it."""
    if kind == Type.MXFP4:
        out[:, 0] = 127 + round(math.log2(spread / 3.3))  # 3.3: root mean square of E2M1
    elif kind == Type.NVFP4:
        exponent = max(0, E4M3_BIAS + round(math.log2(spread / 3.3 / 1.4)))  # 0: subnormal
        out[:, :4] = (out[:, :4] & 7) | exponent << 3
    else:  # IQ1_M: d in the top four bits of four words
        d = _halves(np.full(1, spread / 6.4)).view(np.uint16)
        words = out[:, 48:].view(np.uint16)
        for i in range(4):
            words[:, i] = (words[:, i] & 0x0FFF) | (d[0] >> (4 * i) & 15) << 12
    return out


# Unsigned integer, mantissa bits, exponent bias.
FLOATS = {
    Type.F32: (np.uint32, 23, 127),
    Type.F16: (np.uint16, 10, 15),
    Type.BF16: (np.uint16, 7, 127),
}


def generator(seed: int, name: str) -> np.random.Generator:
    """A tensor's own: its bytes depend on the seed and its name, not on what came before it."""
    return np.random.Generator(np.random.SFC64([seed, zlib.crc32(name.encode())]))


def random_bytes(random: np.random.Generator, count: int) -> np.ndarray:
    words = random.bit_generator.random_raw(-(-count // 8))
    return words.view(np.uint8)[:count]


def _random_floats(kind: Type, count: int, spread: float,
                   random: np.random.Generator) -> np.ndarray:
    """Random sign and mantissa, and one of four neighbouring exponents."""
    unsigned, mantissa, bias = FLOATS[kind]
    unit = math.sqrt(7 / 3 * (1 + 4 + 16 + 64) / 4)  # 7/3: mean square of numbers in [1, 2)
    exponent = bias + round(math.log2(spread / unit))
    if not 0 < exponent < 2 * bias - 2:
        raise SystemExit(f"weights of about {spread} do not fit {kind.name}")
    size = np.dtype(unsigned).itemsize
    bits = random_bytes(random, count * size).view(unsigned)
    sign = 1 << (8 * size - 1)
    bits &= unsigned(sign | ((1 << (mantissa + 2)) - 1))
    bits += unsigned(exponent << mantissa)
    return bits.view(np.uint8)


def _halves(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).view(np.uint8).reshape(-1, 2)


def random_matrix(kind: Type, dims: tuple[int, ...], spread: float,
                  random: np.random.Generator) -> np.ndarray:
    """Bytes [..., row bytes] of weights with mean 0 and root mean square of about `spread`."""
    block_elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    count = math.prod(dims) // block_elements
    shape = (*dims[:-1], dims[-1] // block_elements * block_bytes)
    if kind in FLOATS:
        return _random_floats(kind, count, spread, random).reshape(shape)
    out = random_bytes(random, count * block_bytes).reshape(count, block_bytes)
    if kind not in BLOCKS and kind not in OTHERS:
        return _with_small_scales(kind, out, spread).reshape(shape)
    block = BLOCKS[kind] if kind in BLOCKS else _measured(kind, OTHERS[kind])
    if kind == Type.Q8_0:
        # No quantizer writes -128, and a kernel may count on that.
        np.maximum(out.view(np.int8), np.int8(-127), out=out.view(np.int8))
    # Scales differ by block as real ones do, so that reading the wrong one shows.
    choices = spread / block.unit * np.linspace(0.75, 1.25, 128)
    choices = np.concatenate([choices, -choices if block.signed else choices])
    pick = random_bytes(random, count)
    out[:, block.scale_at:block.scale_at + 2] = _halves(choices)[pick]
    if block.min_at >= 0:
        out[:, block.min_at:block.min_at + 2] = _halves(choices * block.min)[pick]
    if block.k_scales_at >= 0:
        # Each minimum's six bits are those of its scale: d * sc * (q - 7.5).
        scales = out[:, block.k_scales_at:block.k_scales_at + 12]
        scales[:, 4:8] = scales[:, 0:4]
        scales[:, 8:12] = (scales[:, 8:12] & 15) * 17
    return out.reshape(shape)
