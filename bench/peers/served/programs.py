"""The programs under load, each started afresh for it: caches are empty and memory is its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from machine import Others
from served import loads, runner
from served.http_client import Client
from served.runner import Stream
from worker import PeerError, last_line

START_TIMEOUT_S = 60
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass
class Setting:
    wok: str
    llama_server: str
    path: str
    threads: int
    limit_s: float
    log_folder: str


@dataclass
class Outcome:
    streams: list[Stream]
    client_cpu: float | None  # of one CPU, while the load ran; None where there is no client
    others: float  # share of the CPUs that other processes took
    version: str


def wok(setting: Setting, load: str, seed: int) -> Outcome:
    """As users start it. But for `decode`, whose steps a bench's are compared with: without guesses,
    and with prompts first, or the first users would be done before the last have begun."""
    flags = ["--speculate", "off", "--itl-target-ms", "10000"] if load.startswith("decode") else []
    return _http([setting.wok, "serve", setting.path, "--threads", str(setting.threads), *flags],
                 setting, load, seed, "wok")


def llama_cpp(setting: Setting, load: str, seed: int) -> Outcome:
    """llama-server with its defaults, and as many slots, each with the context, as a load needs."""
    shape = loads.make(load, seed, loads.Sizes(loads.Sizes.FEW, loads.Sizes.MANY))
    return _http([setting.llama_server, "-m", setting.path, "-t", str(setting.threads),
                  "-np", str(shape.sequences), "-c",
                  str(shape.sequences * shape.tokens_of_sequence)],
                 setting, load, seed, "llama.cpp")


def openvino(setting: Setting, load: str, seed: int) -> Outcome:
    others = Others([])
    with open(os.path.join(setting.log_folder, "served_openvino.log"), "w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "served.openvino_steps", setting.path, str(setting.threads),
             load, str(seed), str(setting.limit_s)],
            cwd=HERE, stdout=subprocess.PIPE, stderr=log, text=True)
    if done.returncode != 0:
        raise PeerError(f"ended with code {done.returncode}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise PeerError(last_line(answer["error"]))
    return Outcome([Stream(**fields) for fields in answer["streams"]], None, others.share(),
                   answer["version"])


PROGRAMS = {"wok": wok, "llama.cpp": llama_cpp, "OpenVINO": openvino}


def _http(command: list[str], setting: Setting, load: str, seed: int, name: str) -> Outcome:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # A file and no pipe: nobody has to read it.
    log_path = os.path.join(setting.log_folder, f"served_{re.sub(r'[^a-z]', '_', name)}.log")
    with open(log_path, "w") as log:
        server = subprocess.Popen(command + ["--host", "127.0.0.1", "--port", str(port)],
                                  stdout=log, stderr=subprocess.STDOUT)
    try:
        _await_ready(server, port, log_path)
        others = Others([server.pid])
        begin = time.perf_counter()
        streams, cpu_s = runner.measure(Client(port), load, seed, setting.limit_s)
        # Of the load alone: its streams tell how long it took.
        seconds = max((s.times_s[-1] for s in streams if s.times_s),
                      default=time.perf_counter() - begin)
        return Outcome(streams, cpu_s / seconds, others.share(), _version(command[0], name))
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _await_ready(server: subprocess.Popen, port: int, log_path: str) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        if server.poll() is not None:
            with open(log_path, errors="replace") as log:
                raise PeerError(f"ended with code {server.returncode}: {last_line(log.read())}")
        try:
            # One says so by the state of its health, the other by what it lists.
            for path in ("health", "v1/models"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as reply:
                    answer = json.load(reply)
            if answer["data"]:
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.05)
    raise PeerError(f"not ready after {START_TIMEOUT_S} s")


def _version(binary: str, name: str) -> str:
    if name == "wok":
        return "wok"  # Its row says which commit.
    done = subprocess.run([binary, "--version"], capture_output=True, text=True)
    found = re.search(r"version: (\S+)", done.stdout + done.stderr)
    return f"llama-server {found[1] if found else 'of unknown version'}"
