"""Turn by turn: wok, then each peer, the same tests on the same file; and again each round."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import machine
import wok
from tests import Test
from worker import PeerError, Worker

# A peer is one file beside this one, which calls worker.serve().
PEERS = {"llama.cpp": "llama_cpp_peer.py", "OpenVINO": "openvino_peer.py"}
WARM_STEPS = 2


@dataclass
class Settings:
    binary: str
    threads: int
    rounds: int
    peers: list[str]
    log_folder: str
    commit: str


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def compare(settings: Settings, name: str, path: str, turns: list[list[Test]],
            results: dict, measured: Callable[[], None]) -> None:
    """Measures one model and puts its rows and failures into `results` in place of older ones;
    calls `measured` after each depth."""
    workers: dict[str, Worker] = {}
    failures: dict[str, str] = {}
    sequences = max(test.batch for turn in turns for test in turn)
    here = os.path.dirname(os.path.abspath(__file__))
    for peer in settings.peers:
        say(f"{name}: {peer} loads it")
        log = os.path.join(settings.log_folder, os.path.splitext(PEERS[peer])[0] + ".log")
        try:
            workers[peer] = Worker(os.path.join(here, PEERS[peer]), path, settings.threads,
                                   sequences, log)
            results["versions"][peer] = workers[peer].versions
        except PeerError as error:
            failures[peer] = str(error)
            say(f"{name}: {peer} does not load it: {error}")
    # What other peers said of this file in an earlier run stays.
    known = results["failures"].get(name, {})
    failures |= {peer: why for peer, why in known.items() if peer not in settings.peers}
    results["failures"][name] = failures
    for turn in turns:
        try:
            rows = _rounds(settings, name, path, turn, workers, results)
        except PeerError as error:
            say(f"{name}: depth {turn[0].depth} is not measured: {error}")
            continue
        for row in rows:
            results["rows"][row_key(name, row)] = row
        measured()
    for worker in workers.values():
        worker.close()


def row_key(model: str, row: dict) -> str:
    return f"{model} | {row['test']} | {row['depth']} | {row['batch']}"


def _rounds(settings: Settings, name: str, path: str, turn: list[Test],
            workers: dict[str, Worker], results: dict) -> list[dict]:
    """One row a test. Raises PeerError when wok itself refuses."""
    others = machine.Others([worker.process.pid for worker in workers.values()])
    rows = {test: {"model": name, "test": test.name, "depth": test.depth, "batch": test.batch,
                   "threads": settings.threads, "commit": settings.commit,
                   "date": datetime.date.today().isoformat(), "roof": 0.0, "samples": {},
                   "errors": {}} for test in turn}
    for round_number in range(1, settings.rounds + 1):
        say(f"{name}: depth {turn[0].depth}, round {round_number} of {settings.rounds}")
        ours = wok.measure(settings.binary, path, settings.threads, turn)
        for test in turn:
            # The roof is what the machine was seen to do at best.
            rows[test]["roof"] = max(rows[test]["roof"], ours[test]["roof"])
            rows[test]["bound"] = ours[test]["bound"]
            _add(rows[test], "wok", ours[test]["tokens_per_s"])
        for peer, worker in workers.items():
            for test in turn:
                if peer in rows[test]["errors"]:
                    continue
                try:
                    _warm_up(worker, test)
                    _add(rows[test], peer, worker.measure(test))
                except PeerError as error:
                    rows[test]["errors"][peer] = str(error)
    for row in rows.values():
        row["others"] = round(others.share(), 3)
    return list(rows.values())


def _add(row: dict, program: str, tokens_per_s: float) -> None:
    row["samples"].setdefault(program, []).append(round(tokens_per_s, 2))


def _warm_up(worker: Worker, test: Test) -> None:
    """Pages, thread pools and kernels made for a shape. At a depth the test before did it."""
    if test.depth == 0:
        worker.measure(test if test.kind == "pp" else replace(test, tokens=WARM_STEPS))
