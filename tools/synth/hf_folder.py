"""Writes a GGUF model as a Hugging Face folder, plain or quantized, for tests and benchmarks.

    python tools/synth/hf_folder.py MODEL.gguf FOLDER --scheme gptq --group 128 --act-order

Weights are what the GGUF's dequantize to, rounded to nearest: codes, not quality, are the point.
`--reference OUT.gguf` also writes the weights that the folder stands for, in float32, so that
tools/golden/make.py can say what logits they have. Memory: the model in float32, twice.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import gguf
import numpy as np

from hf_gpt_oss import fused_experts

Array = np.ndarray

MODEL_TYPES = {
    "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "olmo2": "olmo2",
    "olmoe": "olmoe", "granite": "granite", "granitemoe": "granitemoe", "smollm3": "smollm3",
    "phi3": "phi3", "gpt-oss": "gpt_oss",
}
CLASSES = {
    "llama": "LlamaForCausalLM", "mixtral": "MixtralForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM", "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM", "olmo2": "Olmo2ForCausalLM", "olmoe": "OlmoeForCausalLM",
    "granite": "GraniteForCausalLM", "granitemoe": "GraniteMoeForCausalLM",
    "granitemoeshared": "GraniteMoeSharedForCausalLM",
    "smollm3": "SmolLM3ForCausalLM", "phi3": "Phi3ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
}
PERMUTED = ("llama", "granite", "granitemoe", "smollm3")
SCHEMES = ("none", "float32", "gptq", "awq", "pack-quantized", "int-quantized", "fp8")
TYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8",
         "uint8": "U8"}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # nibble i of a word holds output ORDER[i]
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


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


class Source:
    """The GGUF's keys, and its tensors by Hugging Face's names and in its order of rows."""

    def __init__(self, path: str):
        self.reader = gguf.GGUFReader(path)
        self.meta = {name: entry.contents() for name, entry in self.reader.fields.items()}
        self.architecture = self.meta["general.architecture"]
        self.model_type = MODEL_TYPES[self.architecture]
        if self.architecture == "llama" and self.get("expert_count", 0):
            self.model_type = "mixtral"
        if self.get("expert_shared_feed_forward_length", 0) and self.model_type == "granitemoe":
            self.model_type = "granitemoeshared"

    def get(self, key: str, default: Any = None) -> Any:
        return self.meta.get(f"{self.architecture}.{key}", default)

    def permuted(self, name: str) -> int:
        """The heads of a matrix whose rows the converter reordered, or 0."""
        if self.architecture in PERMUTED and name.endswith("attn_q.weight"):
            return self.get("attention.head_count")
        if self.architecture in PERMUTED and name.endswith("attn_k.weight"):
            return self.get("attention.head_count_kv")
        return 0

    def hf_name(self, name: str) -> str:
        """Of a tensor that is one module; experts are cut apart by the caller."""
        post = self.architecture in ("gemma2", "gemma3", "olmo2")
        if name.endswith("attn_sinks"):
            return f"model.layers.{name.split('.')[1]}.self_attn.sinks"
        layer = {
            "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
            "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
            "attn_qkv": "self_attn.qkv_proj",
            "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
            "attn_k_norm": "self_attn.k_norm",
            "ffn_norm": "pre_feedforward_layernorm" if post else "post_attention_layernorm",
            "post_attention_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
            "ffn_gate": "mlp.gate_proj", 
            "ffn_up": "mlp.gate_up_proj" if self.architecture == "phi3" else "mlp.up_proj",
            "ffn_down": "mlp.down_proj",
            "ffn_gate_inp": {"gpt_oss": "mlp.router", "mixtral": "block_sparse_moe.gate",
                             "granitemoe": "block_sparse_moe.router.layer"}.get(
                                 self.model_type.removesuffix("shared"), "mlp.gate"),
            "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
            "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
            "ffn_up_shexp": "mlp.shared_expert.up_proj",
            "ffn_down_shexp": "mlp.shared_expert.down_proj",
        }
        whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm",
                 "output": "lm_head"}
        parts = name.split(".")
        if parts[0] == "blk":
            return f"model.layers.{parts[1]}.{layer[parts[2]]}"
        return whole[parts[0]]

    def config(self) -> dict[str, Any]:
        get = self.get
        rope: dict[str, Any] | None = None
        if any(t.name == "rope_freqs.weight" for t in self.reader.tensors):
            # The divisors of every synthetic Llama.
            rope = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
        elif self.architecture == "phi3":
            factors = {t.name: [float(x) for x in t.data] for t in self.reader.tensors
                       if t.name.startswith("rope_factors_")}
            rope = {"rope_type": "longrope", "short_factor": factors["rope_factors_short.weight"],
                    "long_factor": factors["rope_factors_long.weight"],
                    "attention_factor": float(get("rope.scaling.attn_factor"))}
        elif get("rope.scaling.type") == "yarn":
            rope = {"rope_type": "yarn", "factor": float(get("rope.scaling.factor")),
                    "original_max_position_embeddings":
                        int(get("rope.scaling.original_context_length"))}
        out: dict[str, Any] = {
            "architectures": [CLASSES[self.model_type]], "model_type": self.model_type,
            "hidden_size": get("embedding_length"), "intermediate_size": get("feed_forward_length"),
            "num_hidden_layers": get("block_count"),
            "num_attention_heads": get("attention.head_count"),
            "num_key_value_heads": get("attention.head_count_kv"),
            "head_dim": get("attention.key_length"), "max_position_embeddings": get("context_length"),
            "rms_norm_eps": float(np.float32(get("attention.layer_norm_rms_epsilon"))),
            "rope_theta": float(get("rope.freq_base")), "rope_scaling": rope,
            "vocab_size": len(self.meta["tokenizer.ggml.tokens"]),
            "tie_word_embeddings": not any(t.name == "output.weight" for t in self.reader.tensors),
            "torch_dtype": "float32", "bos_token_id": self.meta.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.meta.get("tokenizer.ggml.eos_token_id"), "pad_token_id": None,
        }
        gemma = self.architecture.startswith("gemma")
        out["hidden_activation" if gemma else "hidden_act"] = \
            "gelu_pytorch_tanh" if gemma else "silu"
        if get("expert_count"):
            mixtral = self.model_type in ("mixtral", "granitemoe", "granitemoeshared", "gpt_oss")
            out["num_local_experts" if mixtral else "num_experts"] = get("expert_count")
            out["num_experts_per_tok"] = get("expert_used_count")
            if self.model_type in ("qwen2_moe", "qwen3_moe"):
                out["moe_intermediate_size"] = get("expert_feed_forward_length")
                out["norm_topk_prob"] = self.model_type == "qwen3_moe"
            if self.model_type == "qwen2_moe":
                out["shared_expert_intermediate_size"] = get("expert_shared_feed_forward_length")
            if self.model_type == "granitemoeshared":
                out["shared_intermediate_size"] = get("expert_shared_feed_forward_length")
            if self.model_type == "olmoe":
                out["norm_topk_prob"] = False
        if get("rope.dimension_count", out["head_dim"]) != out["head_dim"]:
            out["partial_rotary_factor"] = get("rope.dimension_count") / out["head_dim"]
        if self.architecture == "phi3":
            out["sliding_window"] = get("attention.sliding_window") or None
            out["original_max_position_embeddings"] = get("rope.scaling.original_context_length")
        if self.architecture == "gemma2":
            out["attn_logit_softcapping"] = float(get("attn_logit_softcapping"))
            out["final_logit_softcapping"] = float(get("final_logit_softcapping"))
        if self.architecture == "gpt-oss":
            out["sliding_window"] = get("attention.sliding_window")
            out["rope_scaling"]["truncate"] = False
        if self.architecture in ("gemma2", "gemma3"):
            out["sliding_window"] = get("attention.sliding_window")
            out["query_pre_attn_scalar"] = get("attention.key_length")
        if self.architecture.startswith("granite"):
            out |= {"embedding_multiplier": float(get("embedding_scale")),
                    "residual_multiplier": float(get("residual_scale")),
                    "attention_multiplier": float(get("attention.scale")),
                    "logits_scaling": float(get("logit_scale"))}
        return out


def write_tokenizer(folder: str, meta: dict[str, Any]) -> None:
    pre = meta.get("tokenizer.ggml.pre", "")
    if pre == "smollm":
        pieces = [{"type": "Digits", "individual_digits": True},
                  {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                   "use_regex": True}]
    else:
        pattern = WORDS.replace("DIGITS", r"\p{N}" if pre == "qwen2" else r"\p{N}{1,3}")
        pieces = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
                   "invert": False},
                  {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                   "use_regex": False}]
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": kind == 3}
             for i, (token, kind) in enumerate(zip(tokens, kinds)) if kind in (3, 4)]
    taken = {entry["content"] for entry in added}
    bos, eos = (meta.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos"))
    post = None
    if meta.get("tokenizer.ggml.add_bos_token") and bos is not None:
        post = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": tokens[bos], "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                         {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {tokens[bos]: {"id": tokens[bos], "ids": [bos],
                                                 "tokens": [tokens[bos]]}}}
    document = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pieces}, "post_processor": post,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "unk_token": None, "byte_fallback": False,
                  "ignore_merges": pre == "llama-bpe",
                  "vocab": {t: i for i, t in enumerate(tokens) if t not in taken},
                  "merges": meta["tokenizer.ggml.merges"]},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": tokens[bos] if bos is not None else None,
                "eos_token": tokens[eos] if eos is not None else None,
                "chat_template": meta.get("tokenizer.chat_template")}
    for name, value in (("tokenizer.json", document), ("tokenizer_config.json", settings)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False)


def unpermute(w: Array, heads: int) -> Array:
    return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def permute(w: Array, heads: int) -> Array:
    return w.reshape(heads, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def convert(source: Source, scheme: Scheme, keep: list[str]) -> tuple[dict, dict]:
    """Tensors by Hugging Face's names; and by GGUF's, what they stand for."""
    out: dict[str, Any] = {}
    reference: dict[str, Array] = {}
    plain = scheme if scheme.name == "float32" else Scheme("none")
    gemma = source.architecture.startswith("gemma")

    def module(name: str, w: Array) -> Array:
        quantized = re.search(r"(_proj|\.w[123])$", name) and not any(k in name for k in keep)
        tensors, value = (scheme if quantized else plain).store(w)
        out.update({f"{name}.{part}": t for part, t in tensors.items()})
        return value

    for tensor in source.reader.tensors:
        name = tensor.name
        if name.startswith("rope_f"):
            reference[name] = tensor.data
            continue
        w = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        if source.architecture == "gpt-oss" and "_exps" in name:
            reference[name] = w
            continue
        if name.endswith("attn_sinks.weight"):
            out[source.hf_name(name.removesuffix(".weight"))] = reference[name] = w
            continue
        if name.endswith(".bias"):
            out[source.hf_name(name) + ".bias"] = w
            reference[name] = w
            continue
        if w.ndim == 1 and "ffn_gate_inp_shexp" not in name:
            shift = 1 if gemma and name.endswith("_norm.weight") else 0
            out[source.hf_name(name) + ".weight"] = w - np.float32(shift)
            reference[name] = (w - np.float32(shift)) + np.float32(shift)
            continue
        if "_shexp." in name and source.architecture == "granitemoe":
            reference[name] = plain.store(w)[1]
            continue
        if "_exps" in name:
            layer = name.split(".")[1]
            which = {"ffn_gate_exps": ("gate_proj", "w1"), "ffn_up_exps": ("up_proj", "w3"),
                     "ffn_down_exps": ("down_proj", "w2")}[name.split(".")[2]]
            if source.architecture == "granitemoe":
                reference[name] = plain.store(w)[1]
                continue
            prefix, part = ("block_sparse_moe", which[1]) if source.model_type == "mixtral" \
                else ("mlp", which[0])
            reference[name] = np.stack([
                module(f"model.layers.{layer}.{prefix}.experts.{e}.{part}", w[e])
                for e in range(len(w))])
            continue
        heads = source.permuted(name)
        vector = w.ndim == 1
        value = module(source.hf_name(name),
                       unpermute(w, heads) if heads else w[None] if vector else w)
        reference[name] = permute(value, heads) if heads else value[0] if vector else value
    if source.architecture == "gpt-oss":
        tensors = {t.name: t for t in source.reader.tensors}
        for i in range(source.get("block_count")):
            out |= fused_experts(tensors, i, reference, scheme.name == "float32")
    if source.architecture == "granitemoe":
        kinds = {"exps": "block_sparse_moe"}
        if source.model_type == "granitemoeshared":
            kinds["shexp"] = "shared_mlp"
        for i in range(source.get("block_count")):
            for kind, name in kinds.items():
                gate, up, down = (reference[f"blk.{i}.ffn_{n}_{kind}.weight"]
                                  for n in ("gate", "up", "down"))
                for part, w in (("input", np.concatenate([gate, up], axis=-2)), ("output", down)):
                    out[f"model.layers.{i}.{name}.{part}_linear.weight"] = \
                        plain.store(w)[0]["weight"]
    return out, reference


def write_reference(path: str, source: Source, weights: dict[str, Array]) -> None:
    writer = gguf.GGUFWriter(path, source.architecture)
    for name, entry in source.reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = entry.types[0]
        element = entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, entry.contents(), kind, sub_type=element)
    for name, value in weights.items():
        writer.add_tensor(name, np.ascontiguousarray(value, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file to read")
    parser.add_argument("folder", help="folder to write")
    parser.add_argument("--scheme", choices=SCHEMES, default="none")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--group", type=int, default=128, help="-1: a whole row")
    parser.add_argument("--asymmetric", action="store_true")
    parser.add_argument("--act-order", action="store_true")
    parser.add_argument("--version", type=int, default=1, choices=(1, 2), help="of GPTQ's zeros")
    parser.add_argument("--says-version", type=int, choices=(1, 2),
                        help="what the configuration says instead")
    parser.add_argument("--block", type=int, default=0, help="FP8: side of a block")
    parser.add_argument("--keep", nargs="*", default=[], help="modules to leave alone")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--reference", help="GGUF file of the weights that the folder stands for")
    args = parser.parse_args()
    source = Source(args.model)
    scheme = Scheme(args.scheme, args.bits, args.group, not args.asymmetric and args.scheme != "awq",
                    args.act_order, args.version, args.block)
    tensors, reference = convert(source, scheme, args.keep)
    os.makedirs(args.folder, exist_ok=True)
    config = source.config()
    if source.architecture == "gpt-oss" and args.scheme != "float32":
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"]}
    if (quantization := scheme.config()) is not None:
        if args.says_version:
            quantization["checkpoint_format"] = "gptq" if args.says_version == 1 else "gptq_v2"
        if "ignore" in quantization:
            quantization["ignore"] += [f"re:.*{name}.*" for name in args.keep]
        config["quantization_config"] = quantization
    with open(os.path.join(args.folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    write_tokenizer(args.folder, source.meta)
    names = sorted(tensors)
    if args.shards == 1:
        write_safetensors(os.path.join(args.folder, "model.safetensors"),
                          {name: tensors[name] for name in names})
    else:
        weight_map = {}
        for i in range(args.shards):
            part = names[i::args.shards]
            shard = f"model-{i + 1:05}-of-{args.shards:05}.safetensors"
            write_safetensors(os.path.join(args.folder, shard), {n: tensors[n] for n in part})
            weight_map |= {name: shard for name in part}
        with open(os.path.join(args.folder, "model.safetensors.index.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": weight_map}, file)
    if args.reference:
        write_reference(args.reference, source, reference)


if __name__ == "__main__":
    main()
