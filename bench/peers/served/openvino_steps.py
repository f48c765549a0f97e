"""OpenVINO GenAI under the same loads, without HTTP: its continuous batching pipeline by steps.

    python -m served.openvino_steps FILE THREADS LOAD SEED LIMIT_S    (in bench/peers)

Prints one JSON object. It samples greedily and its tokens are not turned into text. Prefix cache
on, 512 tokens a step at most; everything else is its default.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict

import openvino_genai
from openvino_genai.py_openvino_genai import GenerationHandle, GenerationStatus

from served import runner
from served.loads import Request
from served.runner import Stream

TOKENS_OF_STEP = 512  # as wok's; its own default is 256
CACHE_GB = 4
SEQUENCES = 64


class Pipeline:
    """See Transport."""

    def __init__(self, path: str, threads: int) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GB
        scheduler.enable_prefix_caching = True
        scheduler.max_num_batched_tokens = TOKENS_OF_STEP
        scheduler.max_num_seqs = SEQUENCES
        self.pipe = openvino_genai.ContinuousBatchingPipeline(
            path, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})
        self.tokenizer = self.pipe.get_tokenizer()
        self.requests = 0
        self.running: list[tuple[GenerationHandle, Stream]] = []

    def submit(self, stream: Stream, request: Request) -> None:
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = request.output_tokens
        config.ignore_eos = True
        config.do_sample = False
        messages = [{"role": "user", "content": request.user}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        text = self.tokenizer.apply_chat_template(messages, True)
        ids = self.tokenizer.encode(text, add_special_tokens=False).input_ids
        stream.prompt_tokens = ids.shape[1]
        self.requests += 1
        self.running.append((self.pipe.add_request(self.requests, ids, config), stream))

    def wait(self, timeout_s: float) -> list[Stream]:
        if not self.running:
            time.sleep(timeout_s)
            return []
        self.pipe.step()
        now = time.perf_counter()
        ended = []
        for handle, stream in self.running:
            while handle.can_read():
                tokens = sum(len(output.generated_ids) for output in handle.read().values())
                stream.output_tokens += tokens
                if tokens:
                    stream.times_s.append(now)
            status = handle.get_status()
            if status != GenerationStatus.RUNNING:
                stream.done = status == GenerationStatus.FINISHED
                stream.error = "" if stream.done else str(status)
                ended.append(stream)
        self.running = [pair for pair in self.running if pair[1] not in ended]
        return ended

    def abort(self) -> None:
        for handle, _ in self.running:
            handle.cancel()
        self.running.clear()
        while self.pipe.has_non_finished_requests():
            self.pipe.step()


def main() -> None:
    path, threads, name, seed, limit_s = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What the library prints is no result.
    try:
        pipeline = Pipeline(path, int(threads))
        streams, _ = runner.measure(pipeline, name, int(seed), float(limit_s))
        answer = {"streams": [asdict(stream) for stream in streams]}
    except Exception as error:  # Whatever a library throws is a result to list.
        answer = {"error": str(error)}
    version = openvino_genai.__version__.split("-")[0]
    json.dump(answer | {"version": f"openvino-genai {version}"}, out)


if __name__ == "__main__":
    main()
