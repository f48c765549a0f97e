"""wok beside llama.cpp: prefill of 512 tokens and decode of 128, by 1 and 16 sequences.

    python bench/compare_llama_cpp.py build/release/wok MODEL.gguf [--threads N]

Both run the same file with the same threads on the same machine, turn by turn, so that noise hits
both; the table gives medians and wok's speed divided by llama.cpp's. Needs llama-cpp-python
(bench/requirements.txt); its decode is driven through the low-level API, so that neither side pays
for sampling or for Python strings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time

import llama_cpp

PROMPT, OUTPUT, MANY = 512, 128, 16


class Peer:
    """One llama.cpp context; sequences are decoded together in one batch."""

    def __init__(self, path: str, threads: int) -> None:
        llama_cpp.llama_backend_init()
        llama_cpp.llama_log_set(QUIET, None)
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = (PROMPT + OUTPUT) * MANY
        params.n_batch = PROMPT
        params.n_ubatch = PROMPT
        params.n_seq_max = MANY
        params.n_threads = threads
        params.n_threads_batch = threads
        self.ctx = llama_cpp.llama_init_from_model(self.model, params)
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(vocab)
        self.batch = llama_cpp.llama_batch_init(PROMPT, 0, MANY)

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.ctx), True)

    def run(self, entries: list[tuple[int, int, int, bool]]) -> float:
        """Decodes (token, position, sequence, wants logits) entries; returns seconds."""
        batch = self.batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, logits) in enumerate(entries):
            batch.token[i] = token % self.vocab_size
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = logits
        begin = time.perf_counter()
        if llama_cpp.llama_decode(self.ctx, batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama_cpp.llama_synchronize(self.ctx)
        return time.perf_counter() - begin

    def measure(self) -> dict[tuple[str, int], float]:
        out = {}
        self.clear()
        entries = [(i * 7919 + 13, i, 0, i == PROMPT - 1) for i in range(PROMPT)]
        out["pp512", 1] = PROMPT / self.run(entries)
        for sequences in (1, MANY):
            self.clear()
            seconds = sum(
                self.run([(step * 31 + s, step, s, True) for s in range(sequences)])
                for step in range(OUTPUT)
            )
            out["tg128", sequences] = OUTPUT * sequences / seconds
        return out


@llama_cpp.llama_log_callback
def QUIET(_level: int, _text: bytes, _data: object) -> None:
    pass


def run_wok(binary: str, path: str, threads: int) -> dict[tuple[str, int], float]:
    done = subprocess.run(
        [binary, "bench", "model", path, "--threads", str(threads), "--batch", f"1,{MANY}",
         "--repetitions", "1", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(done.stdout)["rows"]
    return {(row["test"], row["batch"]): row["tokens_per_s"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="the wok program")
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    peer = Peer(args.model, args.threads)
    peer.measure()  # warm-up
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(run_wok(args.binary, args.model, args.threads))
        theirs.append(peer.measure())
    print(f"llama-cpp-python {llama_cpp.__version__}, {args.threads} threads, "
          f"median of {args.rounds} rounds, tokens/s")
    print(f"{'test':8} {'seqs':>4} {'wok':>10} {'llama.cpp':>10} {'ratio':>6}")
    for key in ours[0]:
        a = statistics.median(r[key] for r in ours)
        b = statistics.median(r[key] for r in theirs)
        print(f"{key[0]:8} {key[1]:4} {a:10.1f} {b:10.1f} {a / b:6.2f}")


if __name__ == "__main__":
    main()
