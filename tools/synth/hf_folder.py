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
from typing import Any

import gguf
import numpy as np

from hf_gpt_oss import fused_experts
from hf_schemes import SCHEMES, Scheme, bf16, bf16_values, write_safetensors

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
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


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
            "head_dim": get("attention.key_length",
                            get("embedding_length") // get("attention.head_count")),
            "max_position_embeddings": get("context_length"),
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
