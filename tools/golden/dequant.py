"""Writes blocks of each weight format and the values they stand for.

    python tools/golden/dequant.py tests/golden/dequant.json

Any bytes are a valid block, so random ones reach every field without a quantizer; only
the fp16 scales are chosen, as random ones would be NaN or overflow. With such scales each
product (fp16 times sub-scale times quant) fits the 24 bits of a float32 and is exact, so
there is one right answer whatever the order of operations, fused multiply-add included.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

SEED = 20260101
BLOCKS = 2

# Byte offsets of the fp16 scales (d, and dmin or m) inside a block.
SCALES: dict[Type, list[int]] = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.TQ1_0: [52],
    Type.TQ2_0: [64],
    Type.IQ2_XXS: [0],
    Type.IQ2_XS: [0],
    Type.IQ2_S: [0],
    Type.IQ3_XXS: [0],
    Type.IQ3_S: [0],
    Type.IQ1_S: [0],
    Type.IQ1_M: [],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.MXFP4: [],
    Type.NVFP4: [],
}

# Zeros, subnormals, the normal range's ends, one, infinities. NaN has no single pattern.
EDGES: dict[Type, list[int]] = {
    Type.F16: [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00],
    Type.BF16: [0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80],
}
EXPONENT = {Type.F16: 0x7C00, Type.BF16: 0x7F80}


def plain_floats(kind: Type, random: np.random.Generator) -> bytes:
    """64 values of a 16-bit float type: the edges, then random finite ones."""
    values = list(EDGES[kind])
    while len(values) < 64:
        value = int(random.integers(0, 1 << 16))
        if value & EXPONENT[kind] != EXPONENT[kind]:
            values.append(value)
    return np.array(values, dtype="<u2").tobytes()


def quantized_blocks(kind: Type, random: np.random.Generator) -> bytes:
    """Random blocks whose scales lie between 2^-8 and 2^-3, of either sign."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, size=(BLOCKS, size), dtype=np.uint8)
    for offset in SCALES[kind]:
        scale = np.exp2(random.uniform(-8, -3, BLOCKS)) * random.choice([-1, 1], BLOCKS)
        blocks[:, offset : offset + 2] = scale.astype("<f2").view(np.uint8).reshape(BLOCKS, 2)
    if kind == Type.IQ1_M:  # Its d is the top four bits of four words.
        d = np.exp2(random.uniform(-8, -3, BLOCKS)).astype("<f2").view("<u2")
        words = blocks[:, 48:].copy().view("<u2")
        for i in range(4):
            words[:, i] = (words[:, i] & 0x0FFF) | (d >> (4 * i) & 15) << 12
        blocks[:, 48:] = words.view(np.uint8)
    if kind == Type.MXFP4:  # An exponent below the smallest normal float, and a usual one.
        blocks[:, 0] = [0, 120]
    return blocks.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", help="JSON file to write")
    args = parser.parse_args()

    random = np.random.Generator(np.random.PCG64(SEED))
    entries = []
    for kind in [*EDGES, *SCALES]:
        data = (plain_floats if kind in EDGES else quantized_blocks)(kind, random)
        values = gguf.quants.dequantize(np.frombuffer(data, np.uint8), kind)
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        entry = {
            "name": kind.name,
            "id": int(kind),
            "block_elements": elements,
            "block_bytes": size,
            "data": data.hex(),
            "values": "".join(f"{bits:08x}" for bits in values.astype(np.float32).view(np.uint32)),
        }
        entries.append("  " + json.dumps(entry, indent=1).replace("\n", "\n  "))
    with open(args.output, "w", encoding="utf-8", newline="\n") as file:
        file.write('{\n "version": 1,\n')
        file.write(f' "reference": "gguf {version("gguf")} dequantization",\n "types": [\n')
        file.write(",\n".join(entries) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
