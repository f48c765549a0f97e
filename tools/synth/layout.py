"""Which type each tensor has in a file of a given kind, as llama.cpp's quantizer lays it out.

The rule, read from `src/llama-quant.cpp` of llama.cpp (the one in llama-cpp-python 0.3.36; without
an importance matrix) and compared with what that quantizer really writes by crosscheck.py:

- vectors and routers stay F32;
- the output matrix, or the embedding where the two are tied, is Q6_K, in a Q8_0 file Q8_0;
- Q4_K_M and Q5_K_M: `attn_v` and `ffn_down` are Q6_K in the first and last eighth of the layers
  and in every third one between;
- a type whose blocks do not fit the rows gives way to one of 32-element blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import gguf
from gguf import GGMLQuantizationType as Type
from gguf import LlamaFileType as FileType

from shapes import Shape, Tensor


@dataclass(frozen=True)
class Layout:
    """`head` is for the output matrix, `more` for the layers that get more bits."""

    file_type: FileType
    base: Type
    head: Type
    more: Type


def _layout(file_type: FileType, base: Type, head: Type | None = None,
            more: Type | None = None) -> Layout:
    return Layout(file_type, base, head or base, more or base)


LAYOUTS = {
    "f32": _layout(FileType.ALL_F32, Type.F32),
    "f16": _layout(FileType.MOSTLY_F16, Type.F16),
    "bf16": _layout(FileType.MOSTLY_BF16, Type.BF16),
    "q4_0": _layout(FileType.MOSTLY_Q4_0, Type.Q4_0, Type.Q6_K),
    "q4_1": _layout(FileType.MOSTLY_Q4_1, Type.Q4_1, Type.Q6_K),
    "q5_0": _layout(FileType.MOSTLY_Q5_0, Type.Q5_0, Type.Q6_K),
    "q5_1": _layout(FileType.MOSTLY_Q5_1, Type.Q5_1, Type.Q6_K),
    "q8_0": _layout(FileType.MOSTLY_Q8_0, Type.Q8_0),
    # Plain Q4_K, to measure the type: no quantizer's mix is without other types beside it.
    "q4_k": _layout(FileType.MOSTLY_Q4_K_S, Type.Q4_K, Type.Q6_K),
    "q5_k": _layout(FileType.MOSTLY_Q5_K_S, Type.Q5_K, Type.Q6_K),
    "q6_k": _layout(FileType.MOSTLY_Q6_K, Type.Q6_K),
    "q4_k_m": _layout(FileType.MOSTLY_Q4_K_M, Type.Q4_K, Type.Q6_K, Type.Q6_K),
    "q5_k_m": _layout(FileType.MOSTLY_Q5_K_M, Type.Q5_K, Type.Q6_K, Type.Q6_K),
}

FALLBACKS = {Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0}


def gets_more_bits(layer: int, layers: int) -> bool:
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def type_of(tensor: Tensor, shape: Shape, layout: Layout) -> Type:
    """The tensor's type. A row that fits no block is refused: no model here has one."""
    if not tensor.is_matrix:
        return Type.F32
    chosen = layout.base
    head = "token_embd.weight" if shape.tied else "output.weight"
    if tensor.name == head:
        chosen = layout.head
    elif "attn_v" in tensor.name or "ffn_down" in tensor.name:
        if gets_more_bits(tensor.layer, shape.layers):
            chosen = layout.more
    cols = tensor.dims[-1]
    if cols % gguf.GGML_QUANT_SIZES[chosen][0] != 0:
        chosen = FALLBACKS.get(chosen, chosen)
    if cols % gguf.GGML_QUANT_SIZES[chosen][0] != 0:
        raise SystemExit(f"'{tensor.name}': rows of {cols} are no multiple of {chosen.name}'s block")
    return chosen
