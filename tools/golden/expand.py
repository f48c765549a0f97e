"""Writes a float32 copy of a quantized GGUF, with exactly the values it dequantizes to.

    python tools/golden/expand.py MODEL.gguf MODEL-f32.gguf

With float32 weights llama.cpp keeps activations in float32 too. crosscheck.py on such a
copy then measures the arithmetic alone, to a thousandth of a logit, instead of the
arithmetic under 8-bit activations.
"""

from __future__ import annotations

import argparse

import gguf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file to read")
    parser.add_argument("output", help="GGUF file to write, 4 bytes a parameter")
    args = parser.parse_args()
    reader = gguf.GGUFReader(args.model)
    writer = gguf.GGUFWriter(args.output, reader.fields["general.architecture"].contents())
    for name, entry in reader.fields.items():
        # The writer itself makes these, and a file type that is no longer true is dropped.
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = entry.types[0]
        element = entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, entry.contents(), kind, sub_type=element)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
