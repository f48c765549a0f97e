"""Each load on each program, in turns; rows for the results file."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable

import wok
from measure import DISTURBED
from served import figures
from served.programs import PROGRAMS, Setting
from tests import Test
from worker import PeerError

LOADS = ["users1", "users4", "users16", "shared", "arriving", "decode16"]
BENCH_STEPS = 128


def measure(setting: Setting, model: str, loads: list[str], programs: list[str], rounds: int,
            commit: str, results: dict, measured: Callable[[], None]) -> None:
    """Puts rows into results["served"] in place of older ones; calls `measured` after each load."""
    table = results.setdefault("served", {})
    for load in loads:
        rows = {program: {"model": model, "load": load, "program": program,
                          "threads": setting.threads, "limit_s": setting.limit_s,
                          "date": datetime.date.today().isoformat(),
                          "commit": commit if program == "wok" else "", "version": "",
                          "discarded": 0, "samples": []} for program in programs}
        for seed in range(1, rounds + 1):
            for program, row in rows.items():
                _say(f"{model}: {load} on {program}, round {seed} of {rounds}")
                try:
                    sample = _sample(setting, load, program, seed, row)
                    if sample["others"] > DISTURBED and row["discarded"] < rounds:
                        row["discarded"] += 1
                        _say(f"others took {sample['others']:.0%} of the CPUs' time; again")
                        sample = _sample(setting, load, program, seed, row)
                    row["samples"].append(sample)
                except PeerError as error:
                    row["error"] = str(error)
                    _say(f"{program}: {error}")
        for program, row in rows.items():
            table[f"{model} | {load} | {program}"] = row
        measured()


def _sample(setting: Setting, load: str, program: str, seed: int, row: dict) -> dict:
    outcome = PROGRAMS[program](setting, load, seed)
    row["version"] = outcome.version
    out = figures.of(load, outcome.streams)
    for message in {stream.error for stream in outcome.streams if stream.error}:
        _say(f"{program}: {message}")
    if program == "wok" and load.startswith("decode") and out["decode_tokens_per_s"]:
        # Right after it, with the server gone: the same steps without sampling, text and HTTP.
        test = Test("tg", BENCH_STEPS, out["depth"] - BENCH_STEPS // 2,
                    int(load.removeprefix("decode")))
        out["bench_tokens_per_s"] = wok.measure(
            setting.wok, setting.path, setting.threads, [test])[test]["tokens_per_s"]
    out |= {"client_cpu": outcome.client_cpu, "others": outcome.others}
    return {name: value if value is None else round(value, 4) for name, value in out.items()}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
