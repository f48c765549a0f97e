"""Llama and the decoders that descend from it in NumPy, written to be read beside the papers.

Llama and Mixtral; Gemma and Gemma 3; Qwen 2, Qwen 3 and their mixtures of experts; OLMo 2 and
OLMoE; Granite, dense and with experts; SmolLM3.

This is the reference the C++ engine is judged by, so it shares nothing with it: the
weights come from the `gguf` package's own dequantizers, activations stay in floating
point (the engine may quantize them), and there is no paging, batching or tiling. Names
follow the GGUF tensors. What a model needs and this file does not know is refused: a
reference that guesses is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gguf
import numpy as np

Array = np.ndarray


YARN_KEYS = ("type", "factor", "original_context_length")


@dataclass(frozen=True)
class Settings:
    """The hyperparameters of one model, as its GGUF metadata states them."""

    architecture: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_base: float
    local_rope_base: float
    window: int  # Sliding window in tokens, the query's own included; 0 means none.
    experts: int  # 0: a dense model.
    experts_used: int
    yarn_factor: float  # 1: the context is not stretched.
    yarn_context: int  # What the model was trained with before it was.
    # Granite's multipliers.
    embedding_scale: float
    residual_scale: float
    attention_scale: float
    logit_divisor: float

    @property
    def is_gemma(self) -> bool:
        return self.architecture in ("gemma", "gemma3")

    @property
    def has_head_norms(self) -> bool:
        """Each query and key head is normalized by itself."""
        return self.architecture in ("gemma3", "qwen3", "qwen3moe")

    @property
    def has_whole_norms(self) -> bool:
        """All query heads together are normalized, and all key heads."""
        return self.architecture in ("olmo2", "olmoe")

    @property
    def normalizes_before(self) -> bool:
        return self.architecture != "olmo2"

    @property
    def normalizes_after(self) -> bool:
        return self.architecture in ("gemma3", "olmo2")

    @property
    def expert_weights_add_up(self) -> bool:
        """The chosen experts' probabilities are divided by their sum."""
        return self.architecture in ("llama", "qwen3moe", "granitemoe")

    @property
    def pairs_are_neighbours(self) -> bool:
        return self.architecture in ("llama", "granite", "granitemoe", "smollm3")

    def rotates(self, layer: int) -> bool:
        """SmolLM3 leaves every fourth layer without positions."""
        return self.architecture != "smollm3" or layer % 4 != 3

    def is_global(self, layer: int) -> bool:
        """Gemma 3 lets every sixth layer see everything; the others see a window."""
        return self.window == 0 or layer % 6 == 5


def metadata(reader: gguf.GGUFReader) -> dict[str, Any]:
    """All key-value pairs of the file as plain Python values."""
    return {name: entry.contents() for name, entry in reader.fields.items()}


def read_settings(meta: dict[str, Any]) -> Settings:
    """Reads hyperparameters, and refuses files with features this reference lacks."""
    arch = meta["general.architecture"]
    known = ("llama", "gemma", "gemma3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "olmo2",
             "olmoe", "granite", "granitemoe", "smollm3")
    if arch not in known:
        raise SystemExit(f"architecture '{arch}': expected one of {', '.join(known)}")
    prefix = f"{arch}.rope.scaling."
    scaling = {key[len(prefix):]: meta[key] for key in meta if key.startswith(prefix)}
    if scaling.get("type", "yarn") != "yarn" or set(scaling) - set(YARN_KEYS):
        raise SystemExit(f"this rope scaling is not in this reference: {scaling}")

    def get(key: str, default: Any = None) -> Any:
        value = meta.get(f"{arch}.{key}", default)
        if value is None:
            raise SystemExit(f"metadata key '{arch}.{key}' is missing")
        return value

    heads = get("attention.head_count")
    head_dim = get("attention.key_length", get("embedding_length") // heads)
    if get("rope.dimension_count", head_dim) != head_dim:
        raise SystemExit("partial rotary embedding is not in this reference")
    # The larger Gemma 3 models scale attention by another rule or scale their positions.
    if arch == "gemma3" and get("block_count") not in (18, 26):
        raise SystemExit("gemma3: only the 270M and 1B text models are in this reference")
    refused = [key for key in ("expert_gating_func", "expert_weights_scale", "expert_group_count")
               if meta.get(f"{arch}.{key}", 0) not in (0, 1)]
    if refused:
        raise SystemExit(f"routing is not in this reference: {refused}")
    granite = arch in ("granite", "granitemoe")
    return Settings(
        architecture=arch,
        layers=get("block_count"),
        width=get("embedding_length"),
        heads=heads,
        kv_heads=get("attention.head_count_kv", heads),
        head_dim=head_dim,
        eps=get("attention.layer_norm_rms_epsilon"),
        rope_base=get("rope.freq_base", 10000.0),
        local_rope_base=get("rope.freq_base_swa", 10000.0),
        window=get("attention.sliding_window", 0) if arch == "gemma3" else 0,
        experts=get("expert_count", 0),
        experts_used=get("expert_used_count", 0),
        yarn_factor=scaling.get("factor", 1.0),
        yarn_context=scaling.get("original_context_length", 0),
        embedding_scale=get("embedding_scale") if granite else 1.0,
        residual_scale=get("residual_scale") if granite else 1.0,
        attention_scale=get("attention.scale") if granite else 1 / math.sqrt(head_dim),
        logit_divisor=get("logit_scale") if granite else 1.0,
    )


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """x / rms(x) * weight over the last axis. Gemma's "1 +" is already in the file."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + x.dtype.type(eps)) * weight


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def rotate(
    x: Array, positions: Array, base: float, interleaved: bool, divisors: Array | float = 1.0
) -> Array:
    """Rotary embedding of x [tokens, heads, head_dim].

    Pair i turns by position * base^(-2i/head_dim) / divisors[i]; Llama 3 has divisors, which
    slow its slow pairs down. GGUF's converter permutes the Q and K rows of Llama so that a
    pair lies side by side (2i, 2i+1); Gemma and Qwen keep the two halves (i, i + head_dim/2).
    Angles are computed in float64, so that position 700 is as exact as position 0.
    """
    half = x.shape[-1] // 2
    frequency = base ** (-np.arange(half, dtype=np.float64) / half) / divisors
    angle = positions[:, None, None] * frequency
    cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    first = np.s_[..., 0::2] if interleaved else np.s_[..., :half]
    second = np.s_[..., 1::2] if interleaved else np.s_[..., half:]
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[first] * sin + x[second] * cos
    return out


def yarn_divisors(s: Settings) -> Array:
    """YaRN (arXiv 2309.00071), section 3.2: pairs that turn often within the original context
    are left alone, those that do not turn once are slowed down by the factor, in between a ramp
    over the pairs' indices blends the two frequencies."""
    pairs = np.arange(s.head_dim // 2, dtype=np.float64)

    def index(turns: float) -> float:
        ratio = s.yarn_context / (turns * 2 * math.pi)
        return s.head_dim * math.log(ratio) / (2 * math.log(s.rope_base))

    first, last = math.floor(index(32)), math.ceil(index(1))
    first, last = max(first, 0), min(last, s.head_dim - 1)
    ramp = np.clip((pairs - first) / max(last - first, 0.001), 0, 1)
    return 1 / (ramp / s.yarn_factor + (1 - ramp))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@dataclass
class Cache:
    """Rotated keys and values of the tokens seen so far, [tokens, kv_heads, head_dim]."""

    keys: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    length: int = 0


class Decoder:
    """One model, dequantized once at construction (about 4 bytes a parameter)."""

    def __init__(self, path: str, dtype: type = np.float32):
        reader = gguf.GGUFReader(path)
        self.meta = metadata(reader)
        self.settings = read_settings(self.meta)
        self.weights: dict[str, Array] = {}
        for tensor in reader.tensors:
            # Rows come out as [out_features, in_features].
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            self.weights[tensor.name] = values.astype(dtype, copy=False)
        self.rope_divisors = self.weights.get("rope_freqs.weight", 1.0)
        self.rope_magnitude = 1.0
        if self.settings.yarn_factor != 1:
            self.rope_divisors = yarn_divisors(self.settings)
            self.rope_magnitude = 0.1 * math.log(self.settings.yarn_factor) + 1
        biases = [name for name in self.weights if name.endswith(".bias")]
        if biases and self.settings.architecture not in ("qwen2", "qwen2moe"):
            raise SystemExit(f"biases are not in this reference: {biases[0]}")
        self.embedding = self.weights["token_embd.weight"]
        self.output = self.weights.get("output.weight", self.embedding)
        # Of the last token of the last forward(): by how much, in any layer, the least probable
        # expert it had was ahead of the first it had not. Rounding turns close choices around.
        self.route_margin = 1.0

    def forward(self, tokens: list[int], cache: Cache) -> Array:
        """Appends `tokens` to the cache; returns the logits after the last one [vocab]."""
        s = self.settings
        positions = np.arange(cache.length, cache.length + len(tokens))
        self.route_margin = 1.0
        x = self.embedding[tokens]
        if s.is_gemma:
            # As llama.cpp: sqrt(width) in float32. The original rounds it to bfloat16,
            # which for width 640 is 25.25 in place of 25.298.
            x = x * x.dtype.type(np.sqrt(np.float32(s.width)))
        x = x * x.dtype.type(s.embedding_scale)
        scale = x.dtype.type(s.residual_scale)
        for layer in range(s.layers):
            x = x + scale * self._attention(x, layer, positions, cache)
            x = x + scale * self._feed_forward(x, layer)
        cache.length += len(tokens)
        last = rms_norm(x[-1], self.weights["output_norm.weight"], s.eps)
        return self.output @ last / x.dtype.type(s.logit_divisor)

    def _layer_weights(self, layer: int) -> Callable[[str], Array]:
        return lambda name: self.weights[f"blk.{layer}.{name}.weight"]

    def _attention(self, x: Array, layer: int, positions: Array, cache: Cache) -> Array:
        s = self.settings
        w = self._layer_weights(layer)
        tokens = len(positions)
        normed = rms_norm(x, w("attn_norm"), s.eps) if s.normalizes_before else x
        q, k, v = (normed @ w(name).T for name in ("attn_q", "attn_k", "attn_v"))
        if s.architecture in ("qwen2", "qwen2moe"):
            q = q + self.weights[f"blk.{layer}.attn_q.bias"]
            k = k + self.weights[f"blk.{layer}.attn_k.bias"]
            v = v + self.weights[f"blk.{layer}.attn_v.bias"]
        if s.has_whole_norms:
            q = rms_norm(q, w("attn_q_norm"), s.eps)
            k = rms_norm(k, w("attn_k_norm"), s.eps)
        q = q.reshape(tokens, s.heads, s.head_dim)
        k = k.reshape(tokens, s.kv_heads, s.head_dim)
        v = v.reshape(tokens, s.kv_heads, s.head_dim)
        if s.has_head_norms:
            q = rms_norm(q, w("attn_q_norm"), s.eps)
            k = rms_norm(k, w("attn_k_norm"), s.eps)
        base = s.rope_base if s.is_global(layer) else s.local_rope_base
        if s.rotates(layer):
            q = rotate(q, positions, base, s.pairs_are_neighbours, self.rope_divisors)
            k = rotate(k, positions, base, s.pairs_are_neighbours, self.rope_divisors)
            q = q * x.dtype.type(self.rope_magnitude)
            k = k * x.dtype.type(self.rope_magnitude)

        if len(cache.keys) == layer:
            cache.keys.append(k)
            cache.values.append(v)
        else:
            k = cache.keys[layer] = np.concatenate([cache.keys[layer], k])
            v = cache.values[layer] = np.concatenate([cache.values[layer], v])

        distance = positions[:, None] - np.arange(len(k))[None, :]
        visible = distance >= 0
        if not s.is_global(layer):
            visible &= distance < s.window
        out = np.empty_like(q)
        for head in range(s.heads):
            group = head // (s.heads // s.kv_heads)  # Grouped queries share one KV head.
            scores = q[:, head] @ k[:, group].T * x.dtype.type(s.attention_scale)
            scores = np.where(visible, scores, x.dtype.type(-np.inf))
            out[:, head] = softmax(scores) @ v[:, group]
        out = out.reshape(tokens, -1) @ w("attn_output").T
        return rms_norm(out, w("post_attention_norm"), s.eps) if s.normalizes_after else out

    def _feed_forward(self, x: Array, layer: int) -> Array:
        s = self.settings
        w = self._layer_weights(layer)
        normed = rms_norm(x, w("ffn_norm"), s.eps) if s.normalizes_before else x
        act = gelu_tanh if s.is_gemma else silu

        def gated(y: Array, gate: Array, up: Array, down: Array) -> Array:
            return (act(y @ gate.T) * (y @ up.T)) @ down.T

        if s.experts > 0:
            return self._experts(normed, layer, gated)
        out = gated(normed, w("ffn_gate"), w("ffn_up"), w("ffn_down"))
        return rms_norm(out, w("post_ffw_norm"), s.eps) if s.normalizes_after else out

    def _experts(self, normed: Array, layer: int, gated: Callable[..., Array]) -> Array:
        """A softmax over all experts; the most probable ones answer, weighted by it."""
        s = self.settings
        w = self._layer_weights(layer)
        probabilities = softmax(normed @ w("ffn_gate_inp").T)
        gates, ups, downs = w("ffn_gate_exps"), w("ffn_up_exps"), w("ffn_down_exps")
        out = np.zeros_like(normed)
        for token, p in enumerate(probabilities):
            order = np.argsort(-p, kind="stable")
            chosen, next_one = order[: s.experts_used], order[s.experts_used]
            if token == len(probabilities) - 1:
                margin = float(p[chosen[-1]] - p[next_one])
                self.route_margin = min(self.route_margin, margin)
            share = p[chosen] / p[chosen].sum() if s.expert_weights_add_up else p[chosen]
            for expert, weight in zip(chosen, share):
                y = gated(normed[token], gates[expert], ups[expert], downs[expert])
                out[token] += weight * y
        if f"blk.{layer}.ffn_up_shexp.weight" in self.weights:
            shared = gated(normed, w("ffn_gate_shexp"), w("ffn_up_shexp"), w("ffn_down_shexp"))
            if s.architecture == "qwen2moe":
                gate = normed @ w("ffn_gate_inp_shexp")
                shared = shared / (1 + np.exp(-gate))[:, None]
            out = out + shared
        return out
