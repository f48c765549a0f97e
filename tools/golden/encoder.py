#!/usr/bin/env python3
"""Tiny encoders with random weights, and what transformers and sentence-transformers make of them.

    encoder.py tests/golden

writes tiny_bert/ (a folder as sentence-transformers saves it), tiny_bert_rerank/ (a cross-encoder),
tiny_bert.gguf (the first one's weights in Q8_0 and F16, under GGUF's names) and encoder.json. The
folders' weights are seeded; the values in encoder.json move in the last decimals between versions of
PyTorch.
"""

import argparse
import json
import pathlib
import shutil
import tempfile

import gguf
import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers import models as modules
from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "sat", "on", "mat", "sea", "is", "blue", "green", "grass", "snow", "white",
         "what", "colour", "of", "cafe", "run", "a", "and", "in"]
PIECES = ["##ing", "##s", "##er", "##ed", "##ly"]
SIGNS = list(".,!?'-()") + ["中", "文"]
TEXTS = [
    "The cat sat on the mat.",
    "the CAT sat, on the mat!",
    "Café in the sea",
    "running cats and the runner's mats",
    "中文 is 文",
    "snow",
    "zebra \u2603 and (a) 42",
    "  the\tsea\n is   blue  ",
    "[SEP] is read",
    "the sea is green and the grass is white, what colour is the snow? a-b",
]
LONG = "the cat sat on the mat and " * 12
QUERY = "What colour is the sea?"
DOCUMENTS = [
    "The sea is blue.",
    "The cat sat on the mat.",
    "Grass is green and snow is white.",
    "blue",
    "what is the colour of the grass in the sea",
    "",
]
MOST_TOKENS = 40


def vocabulary():
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789")
    return SPECIAL + letters + ["##" + c for c in letters] + WORDS[:-3] + PIECES + SIGNS + WORDS[-2:]


def save_tokenizer(folder):
    tokens = list(dict.fromkeys(vocabulary()))
    inner = Tokenizer(WordPiece({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]"))
    inner.normalizer = BertNormalizer(lowercase=True)
    inner.pre_tokenizer = BertPreTokenizer()
    inner.decoder = WordPieceDecoder()
    inner.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", tokens.index("[CLS]")), ("[SEP]", tokens.index("[SEP]"))])
    BertTokenizerFast(tokenizer_object=inner, model_max_length=MOST_TOKENS).save_pretrained(folder)
    return tokens


def config(vocab, layers, **more):
    return BertConfig(vocab_size=vocab, hidden_size=32, num_hidden_layers=layers,
                      num_attention_heads=2, intermediate_size=64, max_position_embeddings=48, **more)


def randomize(model):
    """Weights that make states differ: PyTorch's own start gives nearly the same for all texts."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "LayerNorm.weight" in name:
                p.normal_(1.0, 0.2)
            elif p.dim() == 1:
                p.normal_(0.0, 0.3)
            elif "embeddings" in name:
                p.normal_(0.0, 0.5)
            else:
                p.normal_(0.0, 1.5 / p.shape[1] ** 0.5)
    return model.eval()


def copy(source, target, names):
    shutil.rmtree(target, ignore_errors=True)
    for name in names:
        if not (source / name).exists():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)


FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
MODULES = ["modules.json", "1_Pooling/config.json", "config_sentence_transformers.json",
           "sentence_bert_config.json"]


def make_embedder(folder):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as temporary:
        plain, whole = pathlib.Path(temporary) / "plain", pathlib.Path(temporary) / "whole"
        tokens = save_tokenizer(plain)
        randomize(BertModel(config(len(tokens), 2))).save_pretrained(plain)
        transformer = modules.Transformer(str(plain), max_seq_length=MOST_TOKENS)
        pooling = modules.Pooling(32, pooling_mode="mean")
        SentenceTransformer(modules=[transformer, pooling, modules.Normalize()]).save(str(whole))
        copy(whole, folder, FILES + MODULES)
    return tokens


def make_reranker(folder):
    torch.manual_seed(2)
    with tempfile.TemporaryDirectory() as temporary:
        plain = pathlib.Path(temporary)
        tokens = save_tokenizer(plain)
        randomize(BertForSequenceClassification(config(len(tokens), 1, num_labels=1))
                  ).save_pretrained(plain)
        copy(plain, folder, FILES)


def write_gguf(folder, tokens, path):
    """As llama.cpp's converter names things; the layout of its WordPiece vocabulary likewise."""
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    c = model.config
    out = gguf.GGUFWriter(path, "bert")
    out.add_name("tiny-bert")
    out.add_block_count(c.num_hidden_layers)
    out.add_context_length(MOST_TOKENS)
    out.add_embedding_length(c.hidden_size)
    out.add_feed_forward_length(c.intermediate_size)
    out.add_head_count(c.num_attention_heads)
    out.add_layer_norm_eps(c.layer_norm_eps)
    out.add_causal_attention(False)
    out.add_pooling_type(gguf.PoolingType.MEAN)
    out.add_tokenizer_model("bert")
    out.add_token_list([t if t in SPECIAL else t[2:] if t.startswith("##") else "\u2581" + t
                        for t in tokens])
    for name, add in [("[CLS]", out.add_bos_token_id), ("[SEP]", out.add_sep_token_id),
                      ("[UNK]", out.add_unk_token_id), ("[PAD]", out.add_pad_token_id)]:
        add(tokens.index(name))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, c.num_hidden_layers)
    for name, p in model.named_parameters():
        data, base = p.detach().numpy(), names.get_name(name, try_suffixes=(".weight", ".bias"))
        if data.ndim == 1 or "position" in name or "token_type" in name:
            out.add_tensor(base, data.astype(np.float32))
        elif "embeddings" in name:
            out.add_tensor(base, data.astype(np.float16))
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            out.add_tensor(base, gguf.quantize(data, kind), raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def rounded(values):
    return [round(float(v), 7) for v in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    tokens = make_embedder(folder / "tiny_bert")
    make_reranker(folder / "tiny_bert_rerank")
    write_gguf(folder / "tiny_bert", tokens, folder / "tiny_bert.gguf")

    embedder = SentenceTransformer(str(folder / "tiny_bert"), device="cpu")
    tokenizer = BertTokenizerFast.from_pretrained(folder / "tiny_bert")
    ranker = CrossEncoder(str(folder / "tiny_bert_rerank"), device="cpu")
    pairs = [(QUERY, d) for d in DOCUMENTS]
    logits = ranker.predict(pairs, activation_fn=torch.nn.Identity())
    long_pair = tokenizer(QUERY, LONG, truncation=True, max_length=MOST_TOKENS)
    golden = {
        "texts": [{"text": t, "ids": tokenizer(t)["input_ids"], "embedding": rounded(e)}
                  for t, e in zip(TEXTS, embedder.encode(TEXTS, batch_size=1))],
        "long": {"text": LONG, "tokens": len(tokenizer(LONG)["input_ids"]),
                 "embedding": rounded(embedder.encode([LONG])[0])},
        "query": QUERY,
        # In lists: alone, an empty second text counts as none.
        "documents": [{"text": d, "ids": tokenizer([QUERY], [d])["input_ids"][0],
                       "types": tokenizer([QUERY], [d])["token_type_ids"][0],
                       "logit": round(float(s), 6)} for d, s in zip(DOCUMENTS, logits)],
        "long_pair": {"ids": long_pair["input_ids"], "types": long_pair["token_type_ids"]},
    }
    text = json.dumps(golden, ensure_ascii=False, indent=1)
    (folder / "encoder.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
