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
# A round in which others took more of the CPUs' time than this is measured again, up to as often as
# there are rounds: spinning threads lose many times more than the share that is taken.
DISTURBED = 0.1


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
            rows = _rounds(settings, name, path, turn, workers)
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
            workers: dict[str, Worker]) -> list[dict]:
    """One row a test. Raises PeerError when wok itself refuses."""
    rows = {test: {"model": name, "test": test.name, "depth": test.depth, "batch": test.batch,
                   "threads": settings.threads, "commit": settings.commit,
                   "date": datetime.date.today().isoformat(), "roof": 0.0, "others": 0.0,
                   "discarded": 0, "samples": {}, "errors": {}} for test in turn}
    kept = discarded = 0
    while kept < settings.rounds:
        say(f"{name}: depth {turn[0].depth}, round {kept + 1} of {settings.rounds}")
        others = machine.Others([worker.process.pid for worker in workers.values()])
        samples, reports, errors = _round(settings, path, turn, workers)
        share = others.share()
        if share > DISTURBED and discarded < settings.rounds:
            discarded += 1
            say(f"others took {share:.0%} of the CPUs' time; again")
            continue
        kept += 1
        for test, row in rows.items():
            # The roof is what the machine was seen to do at best.
            row["roof"] = max(row["roof"], reports[test]["roof"])
            row["bound"] = reports[test]["bound"]
            row["others"] = max(row["others"], round(share, 3))
            row["discarded"] = discarded
            row["errors"] |= errors[test]
            for program, tokens_per_s in samples[test].items():
                row["samples"].setdefault(program, []).append(round(tokens_per_s, 2))
    return list(rows.values())


def _round(settings: Settings, path: str, turn: list[Test], workers: dict[str, Worker]
           ) -> tuple[dict[Test, dict[str, float]], dict[Test, dict], dict[Test, dict[str, str]]]:
    """Tokens/s of each program, wok's report, and what peers said that could not."""
    reports = wok.measure(settings.binary, path, settings.threads, turn)
    samples = {test: {"wok": reports[test]["tokens_per_s"]} for test in turn}
    errors: dict[Test, dict[str, str]] = {test: {} for test in turn}
    for peer, worker in workers.items():
        for test in turn:
            try:
                _warm_up(worker, test)
                samples[test][peer] = worker.measure(test)
            except PeerError as error:
                errors[test][peer] = str(error)
    return samples, reports, errors


def _warm_up(worker: Worker, test: Test) -> None:
    """Pages, thread pools and kernels made for a shape. At a depth the test before did it."""
    if test.depth == 0:
        worker.measure(test if test.kind == "pp" else replace(test, tokens=WARM_STEPS))
