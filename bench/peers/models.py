"""Which files are compared: by name, by path, or made here in a model's true shape."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import wok

DEFAULT = ["smollm2", "gemma3:270m", "qwen3-0.6b@q4_0",
           "llama-3.2-1b@q4_0", "llama-3.2-1b@q4_k_m", "llama-3.2-1b@q8_0"]


def resolve(root: str, binary: str, model: str, folder: str) -> tuple[str, str]:
    """A model's name in the tables, and its file.

    `model` is a path, SHAPE@TYPE for random weights (tools/synth), or a name of wok's store.
    """
    if os.path.isfile(model):
        return os.path.basename(model).removesuffix(".gguf"), os.path.abspath(model)
    os.makedirs(folder, exist_ok=True)
    if "@" not in model:
        # The store's names are checksums, and OpenVINO goes by the ending.
        link = os.path.join(folder, re.sub(r"[^\w.-]", "-", model) + ".gguf")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(wok.file_of(binary, model), link)
        return model, link
    shape, kind = model.split("@", 1)
    path = os.path.join(folder, f"{shape}-{kind}.gguf")
    if not os.path.isfile(path):
        make = os.path.join(root, "tools", "synth", "make.py")
        # Under another name until it is whole.
        subprocess.run([sys.executable, make, shape, path + ".part", "--type", kind], check=True)
        os.replace(path + ".part", path)
    return f"{shape} {kind}, random weights", path
