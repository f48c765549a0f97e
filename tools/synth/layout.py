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
    # Likewise alone: llama.cpp's quantizer gives some matrices of these more bits.
    "q2_k": _layout(FileType.MOSTLY_Q2_K, Type.Q2_K, Type.Q6_K),
    "q3_k": _layout(FileType.MOSTLY_Q3_K_S, Type.Q3_K, Type.Q6_K),
    "iq1_s": _layout(FileType.MOSTLY_IQ1_S, Type.IQ1_S, Type.Q6_K),
    "iq1_m": _layout(FileType.MOSTLY_IQ1_M, Type.IQ1_M, Type.Q6_K),
    "iq2_xxs": _layout(FileType.MOSTLY_IQ2_XXS, Type.IQ2_XXS, Type.Q6_K),
    "iq2_xs": _layout(FileType.MOSTLY_IQ2_XS, Type.IQ2_XS, Type.Q6_K),
    "iq2_s": _layout(FileType.MOSTLY_IQ2_S, Type.IQ2_S, Type.Q6_K),
    "iq3_xxs": _layout(FileType.MOSTLY_IQ3_XXS, Type.IQ3_XXS, Type.Q6_K),
    "iq3_s": _layout(FileType.MOSTLY_IQ3_S, Type.IQ3_S, Type.Q6_K),
    "iq4_nl": _layout(FileType.MOSTLY_IQ4_NL, Type.IQ4_NL, Type.Q6_K),
    "iq4_xs": _layout(FileType.MOSTLY_IQ4_XS, Type.IQ4_XS, Type.Q6_K),
    "tq1_0": _layout(FileType.MOSTLY_TQ1_0, Type.TQ1_0, Type.Q6_K),
    "tq2_0": _layout(FileType.MOSTLY_TQ2_0, Type.TQ2_0, Type.Q6_K),
    "mxfp4": _layout(FileType.MOSTLY_MXFP4_MOE, Type.MXFP4, Type.Q6_K),
    "nvfp4": _layout(FileType.MOSTLY_NVFP4, Type.NVFP4, Type.Q6_K),
    "q4_k_m": _layout(FileType.MOSTLY_Q4_K_M, Type.Q4_K, Type.Q6_K, Type.Q6_K),
    "q5_k_m": _layout(FileType.MOSTLY_Q5_K_M, Type.Q5_K, Type.Q6_K, Type.Q6_K),
}

FALLBACKS = {
    Type.Q2_K: Type.Q4_0, Type.Q3_K: Type.Q4_0, Type.TQ1_0: Type.Q4_0, Type.TQ2_0: Type.Q4_0,
    Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0,
    Type.IQ1_S: Type.IQ4_NL, Type.IQ1_M: Type.IQ4_NL, Type.IQ2_XXS: Type.IQ4_NL,
    Type.IQ2_XS: Type.IQ4_NL, Type.IQ2_S: Type.IQ4_NL, Type.IQ3_XXS: Type.IQ4_NL,
    Type.IQ3_S: Type.IQ4_NL, Type.IQ4_XS: Type.IQ4_NL,
}


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
