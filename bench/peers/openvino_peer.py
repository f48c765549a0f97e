"""OpenVINO GenAI over the GGUF file, through its continuous batching pipeline, step by step.

Its prefix cache is off: the same prompt again would cost nothing. Everything else is its default
for this CPU (the precision it computes in, that of its cache). Each step samples greedily.
"""

from __future__ import annotations

import time

import numpy as np
import openvino
import openvino_genai

from tests import Test, token
from worker import serve

CHUNK = 512  # tokens of one prefill step, as in wok's bench
CACHE_GB = 2
VOCABULARY = 30_000  # the first so many tokens of any of the models


class OpenVino:
    def __init__(self, path: str, threads: int, sequences: int) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GB
        scheduler.enable_prefix_caching = False
        scheduler.max_num_batched_tokens = CHUNK
        scheduler.max_num_seqs = sequences
        self.pipe = openvino_genai.ContinuousBatchingPipeline(
            path, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})
        self.requests = 0
        self.handles: list = []  # A request whose handle is gone is dropped.

    def versions(self) -> str:
        return f"openvino-genai {openvino_genai.__version__.split('-')[0]}"

    def measure(self, test: Test) -> float:
        if test.kind == "pp":
            if test.depth > 0:
                raise NotImplementedError("its API has no prompt on top of a cache to time")
            self._add([test.tokens], 1)
            return self._run(-(-test.tokens // CHUNK))
        # A step gives the token after its last position, so the first one comes with the prompt.
        prompt = max(test.depth, 1)
        self._add([prompt] * test.batch, test.tokens + 1)
        for _ in range(-(-prompt * test.batch // CHUNK)):
            self.pipe.step()
        return self._run(test.tokens)

    def _add(self, prompts: list[int], output: int) -> None:
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = output
        config.ignore_eos = True
        config.do_sample = False
        self.handles.clear()
        for sequence, length in enumerate(prompts):
            ids = [[token(i, sequence, VOCABULARY) for i in range(length)]]
            self.requests += 1
            self.handles.append(self.pipe.add_request(
                self.requests, openvino.Tensor(np.array(ids, np.int64)), config))

    def _run(self, expected: int) -> float:
        """Seconds of the steps until all is done; raises when there are fewer or more."""
        steps = 0
        begin = time.perf_counter()
        while self.pipe.has_non_finished_requests():
            self.pipe.step()
            steps += 1
        seconds = time.perf_counter() - begin
        if steps != expected:
            raise RuntimeError(f"{steps} steps instead of {expected}")
        return seconds


if __name__ == "__main__":
    serve(OpenVino)
