"""Checks the files of make.py with llama.cpp: its quantizer and its loader.

    python tools/synth/crosscheck.py layout
    python tools/synth/crosscheck.py load MODEL.gguf...

`layout` lets llama.cpp quantize each shape, narrowed but with all its layers, and compares the
type of every tensor with layout.py. `load` generates eight tokens and looks at the logits. Exit
code 1 when anything differs.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import os
import sys
import tempfile

import gguf
import llama_cpp
import numpy as np

from layout import LAYOUTS, type_of
from make import write_model
from shapes import SHAPES, Shape, tensors

# Made for measuring; llama.cpp has no file type that is the same.
OURS_ALONE = ("q4_k",)


def narrowed(shape: Shape) -> Shape:
    """Few weights, as the rule looks at layers and at whether rows are multiples of 256."""
    if shape.width < 256:
        return shape
    width = 256 if shape.width % 256 == 0 else 96
    small = dict(width=width, feed_forward=512, heads=8, kv_heads=2, head_dim=32, vocabulary=512,
                 first_special=0)
    if shape.experts > 0:
        small |= dict(experts=4, experts_used=2, expert_feed_forward=256)
    return dataclasses.replace(shape, **small)


def quantized_types(source: str, target: str, file_type: int) -> dict[str, str]:
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = file_type
    params.nthread = 1
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) != 0:
        raise SystemExit(f"llama.cpp did not quantize {source}")
    return {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(target).tensors}


def check_layouts() -> bool:
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    right = True
    for name, full in SHAPES.items():
        shape = narrowed(full)
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "f32.gguf"), os.path.join(folder, "out.gguf")
            write_model(source, name, shape, LAYOUTS["f32"], seed=0)
            for kind, layout in LAYOUTS.items():
                if kind in OURS_ALONE:
                    continue
                theirs = quantized_types(source, target, layout.file_type)
                ours = {t.name: type_of(t, shape, layout).name for t in tensors(shape)}
                wrong = sorted(key for key in ours | theirs if ours.get(key) != theirs.get(key))
                for key in wrong[:5]:
                    print(f"{name} {kind}: {key} is {ours.get(key)} here, {theirs.get(key)} there")
                right &= not wrong
        print(f"{name}: {len(LAYOUTS) - len(OURS_ALONE)} layouts compared")
    return right


def check_loads(path: str) -> bool:
    llama = llama_cpp.Llama(path, n_ctx=256, n_threads=2, verbose=False)
    tokens = llama.tokenize(b"hello there", add_bos=True, special=True)
    llama.eval(tokens)
    pointer = llama_cpp.llama_get_logits_ith(llama.ctx, -1)
    logits = np.ctypeslib.as_array(pointer, shape=(llama.n_vocab(),)).copy()
    answer = llama("hello", max_tokens=8, temperature=0)["choices"][0]["text"]
    print(f"{path}: logits of spread {logits.std():.2f} up to {logits.max():.2f}; {answer!r}")
    return bool(np.isfinite(logits).all() and 0.5 < logits.std() < 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=("layout", "load"))
    parser.add_argument("models", nargs="*", help="GGUF files, for load")
    args = parser.parse_args()
    if args.check == "layout":
        results = [check_layouts()]
    else:
        results = [check_loads(path) for path in args.models]
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
