"""llama.cpp through llama-cpp-python's low-level API: no sampling, no strings, no detokenizing."""

from __future__ import annotations

import time

import llama_cpp

from tests import Test, token
from worker import serve

CHUNK = 512  # tokens of one prefill step, as in wok's bench
DEFAULT_POSITIONS = 640


@llama_cpp.llama_log_callback
def keep_errors(level: int, text: bytes, _data: object) -> None:
    if level >= 4:  # GGML_LOG_LEVEL_ERROR
        LlamaCpp.last_error = text.decode(errors="replace").strip() or LlamaCpp.last_error


class LlamaCpp:
    """One model; one context, made again when a test needs more positions or other sequences."""

    last_error = ""

    def __init__(self, path: str, threads: int, sequences: int) -> None:
        self.threads, self.sequences = threads, sequences
        llama_cpp.llama_backend_init()
        llama_cpp.llama_log_set(keep_errors, None)
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError(LlamaCpp.last_error or "llama_model_load_from_file failed")
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self.batch = llama_cpp.llama_batch_init(max(CHUNK, sequences), 0, sequences)
        self.ctx = None
        self.shape = (0, 0)  # positions and sequences of the context
        self.filled = 0  # positions of sequence 0 that are computed

    def versions(self) -> str:
        return f"llama-cpp-python {llama_cpp.__version__}"

    def measure(self, test: Test) -> float:
        self._prepare(test)
        if test.kind == "pp":
            return self._prompt(test.depth, test.tokens)
        return sum(
            self._decode([(token(step, s, self.vocabulary), test.depth + step, s, True)
                          for s in range(test.batch)])
            for step in range(test.tokens))

    def _prepare(self, test: Test) -> None:
        """A context with `depth` positions computed: those of the test before, where they are."""
        needed = max(test.depth + test.tokens, DEFAULT_POSITIONS)
        shape = (needed, self.sequences if test.depth == 0 else 1)
        if self.ctx is None or shape[0] > self.shape[0] or shape[1] != self.shape[1]:
            self._create(shape)
        memory = llama_cpp.llama_get_memory(self.ctx)
        if self.filled != test.depth or not test.depth or not llama_cpp.llama_memory_seq_rm(
                memory, 0, test.depth, -1):
            llama_cpp.llama_memory_clear(memory, True)
            self.filled = 0
        if self.filled < test.depth:
            self._prompt(0, test.depth)
            self.filled = test.depth

    def _create(self, shape: tuple[int, int]) -> None:
        if self.ctx is not None:
            llama_cpp.llama_free(self.ctx)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = shape[0] * shape[1]
        params.n_batch = params.n_ubatch = CHUNK
        params.n_seq_max = shape[1]
        if shape[1] == 1:
            # Its default, flash attention, decoded smollm2 at 2,048 positions at 17 tokens/s; this
            # way 41, and prompts alike.
            params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.n_threads = params.n_threads_batch = self.threads
        self.ctx = llama_cpp.llama_init_from_model(self.model, params)
        if not self.ctx:
            raise RuntimeError(LlamaCpp.last_error or "llama_init_from_model failed")
        self.shape, self.filled = shape, 0

    def _prompt(self, depth: int, tokens: int) -> float:
        seconds = 0.0
        for begin in range(0, tokens, CHUNK):
            end = min(begin + CHUNK, tokens)
            seconds += self._decode([(token(i, 0, self.vocabulary), depth + i, 0, i == tokens - 1)
                                     for i in range(begin, end)])
        return seconds

    def _decode(self, entries: list[tuple[int, int, int, bool]]) -> float:
        """Computes (token, position, sequence, wants logits) entries; returns seconds."""
        batch = self.batch
        batch.n_tokens = len(entries)
        for i, (value, position, sequence, logits) in enumerate(entries):
            batch.token[i] = value
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = logits
        begin = time.perf_counter()
        if llama_cpp.llama_decode(self.ctx, batch) != 0:
            raise RuntimeError(LlamaCpp.last_error or "llama_decode failed")
        llama_cpp.llama_synchronize(self.ctx)
        return time.perf_counter() - begin


if __name__ == "__main__":
    serve(LlamaCpp)
