"""The shapes of real models, as their published configurations state them, and their tensors.

Widths, layers, heads and vocabularies decide how fast a model is and how much memory it takes;
the values of its weights do not. Tensor names and keys are those of GGUF files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Llama3Rope:
    """Llama 3's stretch of the slow rotations (`rope_scaling` in its configuration)."""

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_context: int

    def divisors(self, base: float, dims: int) -> np.ndarray:
        """What `rope_freqs.weight` holds: each frequency is divided by its own number."""
        out = []
        for pair in range(dims // 2):
            wavelength = 2 * math.pi * base ** (2 * pair / dims)
            turns = self.original_context / wavelength
            if turns > self.high_frequency_factor:
                out.append(1.0)
            elif turns < self.low_frequency_factor:
                out.append(self.factor)
            else:
                span = self.high_frequency_factor - self.low_frequency_factor
                smooth = (turns - self.low_frequency_factor) / span
                out.append(1 / ((1 - smooth) / self.factor + smooth))
        return np.array(out, np.float32)


@dataclass(frozen=True)
class Shape:
    """One model. Sizes in elements, `context` in tokens."""

    architecture: str
    tokenizer: str  # A key of vocabulary.FAMILIES.
    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    first_special: int  # The id of the family's first special token.
    context: int
    rope_base: float
    eps: float
    tied: bool  # The output matrix is the embedding.
    rope: Llama3Rope | None = None
    experts: int = 0  # 0: a dense model.
    experts_used: int = 0
    expert_feed_forward: int = 0
    window: int = 0  # Sliding window in tokens; 0: none.
    shared_feed_forward: int = 0  # Of the expert that every token has; 0: none.
    yarn: tuple[float, int] | None = None  # Factor, and the context before it.
    scales: tuple[float, float, float, float] | None = None  # Granite: embedding, residual,
    # attention, logits (a divisor).
    caps: tuple[float, float] | None = None  # Gemma 2: of attention scores and of logits.
    rope_part: float = 1.0  # Of a head's elements, those that rotate.
    long_rope: tuple[int, float] | None = None  # LongRoPE: the trained context, the magnitude.

    @property
    def rope_dims(self) -> int:
        return int(self.head_dim * self.rope_part)


@dataclass(frozen=True)
class Tensor:
    """`dims` slowest first, as NumPy has them. Vectors and routers stay float32."""

    name: str
    dims: tuple[int, ...]
    layer: int = -1

    @property
    def is_matrix(self) -> bool:
        return (len(self.dims) > 1 and "ffn_gate_inp" not in self.name
                and not self.name.endswith(".bias"))

    @property
    def elements(self) -> int:
        return math.prod(self.dims)


# Small enough for a test. The head is wider than width / heads, as in Qwen3-0.6B.
TINY = dict(layers=2, width=64, feed_forward=96, heads=4, kv_heads=2, head_dim=32,
            vocabulary=320, first_special=300, context=4096, tied=True)

SHAPES = {
    "smollm2-135m": Shape("llama", "smollm", 30, 576, 1536, 9, 3, 64, 49152, 0, 8192,
                          1e5, 1e-5, tied=True),
    "llama-3.2-1b": Shape("llama", "llama3", 16, 2048, 8192, 32, 8, 64, 128256, 128000, 131072,
                          5e5, 1e-5, tied=True, rope=Llama3Rope(32, 1, 4, 8192)),
    "qwen2.5-0.5b": Shape("qwen2", "qwen", 24, 896, 4864, 14, 2, 64, 151936, 151643, 32768,
                          1e6, 1e-6, tied=True),
    "qwen3-0.6b": Shape("qwen3", "qwen", 28, 1024, 3072, 16, 8, 128, 151936, 151643, 40960,
                        1e6, 1e-6, tied=True),
    "qwen3-8b": Shape("qwen3", "qwen", 36, 4096, 12288, 32, 8, 128, 151936, 151643, 40960,
                      1e6, 1e-6, tied=False),
    "qwen3-30b-a3b": Shape("qwen3moe", "qwen", 48, 2048, 6144, 32, 4, 128, 151936, 151643, 40960,
                           1e6, 1e-6, tied=False,
                           experts=128, experts_used=8, expert_feed_forward=768),
    # A quarter of its layers: as fast a layer, and two programs fit into 24 GiB beside each other.
    "qwen3-30b-a3b-12l": Shape("qwen3moe", "qwen", 12, 2048, 6144, 32, 4, 128, 151936, 151643,
                               40960, 1e6, 1e-6, tied=False,
                               experts=128, experts_used=8, expert_feed_forward=768),
    "tiny-llama": Shape("llama", "llama3", rope_base=5e5, eps=1e-5,
                        rope=Llama3Rope(32, 1, 4, 8192), **TINY),
    # llama.cpp takes no other head size for it than width / heads.
    "tiny-qwen2": Shape("qwen2", "qwen", rope_base=1e6, eps=1e-6, **(TINY | dict(head_dim=16))),
    "tiny-qwen3": Shape("qwen3", "qwen", rope_base=1e6, eps=1e-6, **TINY),
    "tiny-qwen3moe": Shape("qwen3moe", "qwen", rope_base=1e6, eps=1e-6, experts=4,
                           experts_used=2, expert_feed_forward=32, **TINY),
    # A context stretched: the prompts of the golden go beyond the original one.
    "tiny-yarn": Shape("qwen3", "qwen", rope_base=1e4, eps=1e-6, yarn=(4.0, 128), **TINY),
    "tiny-mixtral": Shape("llama", "llama3", rope_base=1e6, eps=1e-5, experts=4, experts_used=2,
                          expert_feed_forward=96, **(TINY | dict(head_dim=16))),
    "tiny-qwen2moe": Shape("qwen2moe", "qwen", rope_base=1e6, eps=1e-6, experts=6, experts_used=3,
                           expert_feed_forward=32, shared_feed_forward=64,
                           **(TINY | dict(head_dim=16, tied=False))),
    "tiny-olmo2": Shape("olmo2", "qwen", rope_base=5e5, eps=1e-6,
                        **(TINY | dict(head_dim=16, tied=False))),
    "tiny-olmoe": Shape("olmoe", "qwen", rope_base=1e4, eps=1e-5, experts=8, experts_used=3,
                        expert_feed_forward=96,
                        **(TINY | dict(head_dim=16, kv_heads=4, tied=False))),
    "tiny-granite": Shape("granite", "smollm", rope_base=1e4, eps=1e-5,
                          scales=(12.0, 0.22, 0.0625, 2.0),
                          **(TINY | dict(head_dim=16, first_special=0))),
    "tiny-granitemoe": Shape("granitemoe", "smollm", rope_base=1e4, eps=1e-5, experts=4,
                             experts_used=2, expert_feed_forward=96, shared_feed_forward=64,
                             scales=(12.0, 0.22, 0.0625, 2.0),
                             **(TINY | dict(head_dim=16, first_special=0))),
    # Four layers, so that one of them does not rotate.
    "tiny-smollm3": Shape("smollm3", "llama3", rope_base=5e6, eps=1e-6,
                          **(TINY | dict(layers=4, head_dim=16))),
    "tiny-gemma": Shape("gemma", "smollm", rope_base=1e4, eps=1e-6,
                        **(TINY | dict(first_special=0))),
    # The prompts of the golden leave the window of every other layer; the caps are low, so that
    # scores and logits meet them.
    "tiny-gemma2": Shape("gemma2", "smollm", rope_base=1e4, eps=1e-6, window=32, caps=(5.0, 12.0),
                         **(TINY | dict(first_special=0, feed_forward=64))),
    # Every prompt is longer than the trained context, so that the long divisors count.
    "tiny-phi3": Shape("phi3", "smollm", rope_base=1e4, eps=1e-5, window=40, rope_part=0.75,
                       long_rope=(1, 1.19), **(TINY | dict(head_dim=16, first_special=0))),
    "tiny-gpt-oss": Shape("gpt-oss", "llama3", rope_base=1.5e5, eps=1e-5, window=32, experts=4,
                          experts_used=2, expert_feed_forward=64, yarn=(8.0, 64),
                          **(TINY | dict(head_dim=16, feed_forward=64))),
    # Six layers, so that one of them is global.
    "tiny-gemma3": Shape("gemma3", "smollm", rope_base=1e6, eps=1e-6, window=512,
                         **(TINY | dict(layers=6, first_special=0))),
}


def _layer(s: Shape, i: int) -> Iterator[Tensor]:
    def tensor(name: str, *dims: int) -> Tensor:
        return Tensor(f"blk.{i}.{name}.weight", dims, i)

    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    if s.architecture != "olmo2":
        yield tensor("attn_norm", s.width)
    if s.architecture == "phi3":
        yield tensor("attn_qkv", q + 2 * kv, s.width)
    else:
        yield tensor("attn_q", q, s.width)
        yield tensor("attn_k", kv, s.width)
        yield tensor("attn_v", kv, s.width)
    yield tensor("attn_output", s.width, q)
    if s.architecture == "gpt-oss":
        yield Tensor(f"blk.{i}.attn_output.bias", (s.width,), i)
        yield tensor("attn_sinks", s.heads)
        yield tensor("post_attention_norm", s.width)
        yield Tensor(f"blk.{i}.ffn_gate_inp.bias", (s.experts,), i)
        for name, rows in (("gate", s.expert_feed_forward), ("up", s.expert_feed_forward),
                           ("down", s.width)):
            yield Tensor(f"blk.{i}.ffn_{name}_exps.bias", (s.experts, rows), i)
    if s.architecture in ("qwen2", "qwen2moe", "gpt-oss"):
        yield Tensor(f"blk.{i}.attn_q.bias", (q,), i)
        yield Tensor(f"blk.{i}.attn_k.bias", (kv,), i)
        yield Tensor(f"blk.{i}.attn_v.bias", (kv,), i)
    if s.architecture in ("qwen3", "qwen3moe", "gemma3"):
        yield tensor("attn_q_norm", s.head_dim)
        yield tensor("attn_k_norm", s.head_dim)
    if s.architecture in ("olmo2", "olmoe"):
        yield tensor("attn_q_norm", q)
        yield tensor("attn_k_norm", kv)
    if s.architecture in ("gemma2", "gemma3", "olmo2"):
        yield tensor("post_attention_norm", s.width)
        yield tensor("post_ffw_norm", s.width)
    if s.architecture not in ("olmo2", "gpt-oss"):
        yield tensor("ffn_norm", s.width)
    if s.architecture == "phi3":
        yield tensor("ffn_up", 2 * s.feed_forward, s.width)
        yield tensor("ffn_down", s.width, s.feed_forward)
        return
    if s.experts == 0:
        yield tensor("ffn_gate", s.feed_forward, s.width)
        yield tensor("ffn_up", s.feed_forward, s.width)
        yield tensor("ffn_down", s.width, s.feed_forward)
        return
    inner = s.expert_feed_forward
    yield tensor("ffn_gate_inp", s.experts, s.width)
    yield tensor("ffn_gate_exps", s.experts, inner, s.width)
    yield tensor("ffn_up_exps", s.experts, inner, s.width)
    yield tensor("ffn_down_exps", s.experts, s.width, inner)
    if s.shared_feed_forward > 0:
        yield tensor("ffn_gate_shexp", s.shared_feed_forward, s.width)
        yield tensor("ffn_up_shexp", s.shared_feed_forward, s.width)
        yield tensor("ffn_down_shexp", s.width, s.shared_feed_forward)
        if s.architecture == "qwen2moe":
            yield tensor("ffn_gate_inp_shexp", s.width)


def tensors(s: Shape) -> Iterator[Tensor]:
    """Every tensor of the model, in the order of the file."""
    yield Tensor("token_embd.weight", (s.vocabulary, s.width))
    if s.rope is not None:
        yield Tensor("rope_freqs.weight", (s.head_dim // 2,))
    if s.long_rope is not None:
        for kind in ("long", "short"):
            yield Tensor(f"rope_factors_{kind}.weight", (s.rope_dims // 2,))
    for i in range(s.layers):
        yield from _layer(s, i)
    yield Tensor("output_norm.weight", (s.width,))
    if not s.tied:
        yield Tensor("output.weight", (s.vocabulary, s.width))
