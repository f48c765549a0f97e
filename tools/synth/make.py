"""Writes a GGUF file with random weights in the true shape of a real model.

    python tools/synth/make.py llama-3.2-1b build/llama.gguf --type q4_k_m

Such a file takes as long to compute, and as much memory, as the real one; what it says is
nonsense. Memory: the largest tensor. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import math
import os
import time

import gguf
import numpy as np

from blocks import generator, random_matrix
from layout import LAYOUTS, Layout, type_of
from shapes import SHAPES, Shape, Tensor, tensors
from vocabulary import write_tokenizer

# Where norms lie. Trained models sharpen queries and keys and spread their logits; with ones
# everywhere every token would get the same attention and about the same probability.
NORMS = {"attn_q_norm": 2.0, "attn_k_norm": 2.0, "output_norm": 4.0}


def write_keys(writer: gguf.GGUFWriter, name: str, shape: Shape, layout: Layout) -> None:
    writer.add_name(f"{name}, random weights")
    writer.add_file_type(layout.file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_rope_dimension_count(shape.rope_dims)
    if shape.experts > 0:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.experts_used)
        writer.add_expert_feed_forward_length(shape.expert_feed_forward)
    if shape.yarn is not None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(shape.yarn[0])
        writer.add_rope_scaling_orig_ctx_len(shape.yarn[1])
    if shape.shared_feed_forward > 0:
        writer.add_expert_shared_feed_forward_length(shape.shared_feed_forward)
    if shape.scales is not None:
        embedding, residual, attention, logits = shape.scales
        writer.add_embedding_scale(embedding)
        writer.add_residual_scale(residual)
        writer.add_attention_scale(attention)
        writer.add_logit_scale(logits)
    if shape.long_rope is not None:
        writer.add_rope_scaling_orig_ctx_len(shape.long_rope[0])
        writer.add_rope_scaling_attn_factors(shape.long_rope[1])
    if shape.caps is not None:
        writer.add_attn_logit_softcapping(shape.caps[0])
        writer.add_final_logit_softcapping(shape.caps[1])
    if shape.window > 0:
        writer.add_sliding_window(shape.window)


def values(tensor: Tensor, shape: Shape, kind: gguf.GGMLQuantizationType, seed: int) -> np.ndarray:
    """The tensor's bytes: matrices such that a product is about as large as its input."""
    random = generator(seed, tensor.name)
    if tensor.name == "rope_freqs.weight":
        return shape.rope.divisors(shape.rope_base, shape.head_dim)
    if tensor.name.startswith("rope_factors_"):
        most = 8.0 if "long" in tensor.name else 1.5
        return random.uniform(1, most, tensor.dims).astype(np.float32)
    if tensor.name.endswith(".bias"):
        # Of experts wide enough to meet the limits of the gate.
        most = 8 if "_exps" in tensor.name and "down" not in tensor.name else 2
        return random.uniform(-most, most, tensor.dims).astype(np.float32)
    if len(tensor.dims) > 1:
        return random_matrix(kind, tensor.dims, 1 / math.sqrt(tensor.dims[-1]), random)
    if "attn_sinks" in tensor.name:
        return random.uniform(-1, 3, tensor.dims).astype(np.float32)
    if tensor.name.endswith("ffn_gate_inp_shexp.weight"):
        return (random.normal(0, 1, tensor.dims) / math.sqrt(shape.width)).astype(np.float32)
    centre = NORMS.get(tensor.name.split(".")[-2], 1.0)
    return (centre * random.uniform(0.75, 1.25, tensor.dims)).astype(np.float32)


def write_model(path: str, name: str, shape: Shape, layout: Layout, seed: int) -> int:
    """Writes the file tensor by tensor; returns the number of parameters."""
    writer = gguf.GGUFWriter(path, shape.architecture)
    write_keys(writer, name, shape, layout)
    write_tokenizer(writer, shape)
    plan = [(tensor, type_of(tensor, shape, layout)) for tensor in tensors(shape)]
    for tensor, kind in plan:
        block_elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        nbytes = tensor.elements // block_elements * block_bytes
        writer.add_tensor_info(tensor.name, tensor.dims, np.dtype(np.float32), nbytes, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor, kind in plan:
        writer.write_tensor_data(values(tensor, shape, kind, seed))
    writer.close()
    return sum(tensor.elements for tensor, _ in plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES, metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("output", help="GGUF file to write")
    parser.add_argument("--type", choices=LAYOUTS, default="q4_0", metavar="TYPE",
                        help=", ".join(LAYOUTS) + " (default: q4_0)")
    parser.add_argument("--seed", type=int, default=0, help="other weights (default: 0)")
    args = parser.parse_args()
    start = time.perf_counter()
    name = f"{args.shape} {args.type}"
    parameters = write_model(args.output, name, SHAPES[args.shape], LAYOUTS[args.type], args.seed)
    seconds = time.perf_counter() - start
    print(f"{args.output}: {parameters:,} parameters, {os.path.getsize(args.output):,} bytes, "
          f"{seconds:.1f} s")


if __name__ == "__main__":
    main()
