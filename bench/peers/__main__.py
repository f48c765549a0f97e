"""wok beside llama.cpp and OpenVINO GenAI: the same files, the same threads, turn by turn.

    python bench/peers measure [--models M,M,…] [--threads N] [--rounds N] [--depth N,N,…] …
    python bench/peers served [--models M,M,…] [--loads L,L,…] [--programs P,P,…] [--rounds N] …
    python bench/peers report MACHINE

`measure` (a forward pass at a time) and `served` (users of a server) add rows to
bench/results/MACHINE.json, in place of older ones of the same test, and then do what `report` does:
write the section of bench/results/MACHINE.md and the pictures in
docs/images. Needs bench/requirements.txt and a build of wok. docs/performance.md says more.
"""

from __future__ import annotations

import argparse
import json
import os

import machine
import measure
import models
import plot
import report
import summary
import tests
import wok
from served import measure as served
from served import programs
from served import report as served_report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "bench", "results")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/peers", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("measure", help="measure, then write the report")
    run.add_argument("--models", type=words, default=models.DEFAULT, metavar="M,M,…",
                     help="paths, names of wok's store, or SHAPE@TYPE for random weights "
                          f"(default: {','.join(models.DEFAULT)})")
    run.add_argument("--peers", type=words, default=list(measure.PEERS), metavar="P,P,…",
                     help=f"default: {','.join(measure.PEERS)}")
    run.add_argument("--rounds", type=int, default=3)
    run.add_argument("--prompt", type=int, default=512, help="tokens; 0: no prefill")
    run.add_argument("--steps", type=int, default=128, help="of a decode")
    run.add_argument("--batch", type=numbers, default=[1, 2, 4, 8, 16, 32], metavar="N,N,…",
                     help="sequences that decode together (default: 1,2,4,8,16,32)")
    run.add_argument("--depth", type=numbers, default=[0, 2048, 8192], metavar="N,N,…",
                     help="positions in the cache, one sequence beyond 0 (default: 0,2048,8192)")
    load = commands.add_parser("served", help="put served loads on, then write the report")
    load.add_argument("--models", type=words, default=["smollm2"], metavar="M,M,…",
                      help="as for measure (default: smollm2)")
    load.add_argument("--loads", type=words, default=served.LOADS, metavar="L,L,…",
                      help=f"usersN, shared, arriving, decodeN (default: {','.join(served.LOADS)})")
    load.add_argument("--programs", type=words, default=list(programs.PROGRAMS), metavar="P,P,…",
                      help=f"default: {','.join(programs.PROGRAMS)}")
    load.add_argument("--rounds", type=int, default=1)
    load.add_argument("--limit-s", type=float, default=600, help="of one load on one program")
    load.add_argument("--llama-server", default=os.path.join(
        ROOT, "build", "peers", "llama-server", "bin", "llama-server"))
    for command in (run, load):
        command.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
        command.add_argument("--wok", default=wok.default_binary(ROOT), help="the wok program")
        command.add_argument("--folder", default=os.path.join(ROOT, "build", "peers"),
                             help="where files of random weights and logs are kept")
    written = commands.add_parser("report", help="write the report of what is measured")
    written.add_argument("slug", help="the machine: the results file's name without .json")
    args = parser.parse_args()
    if args.command == "measure" and set(args.peers) - set(measure.PEERS):
        parser.error(f"peers are {', '.join(measure.PEERS)}")
    if args.command == "served" and set(args.programs) - set(programs.PROGRAMS):
        parser.error(f"programs are {', '.join(programs.PROGRAMS)}")
    return args


def load(slug: str) -> dict:
    path = os.path.join(RESULTS, slug + ".json")
    if not os.path.isfile(path):
        return {"machine": {}, "versions": {}, "failures": {}, "rows": {}}
    with open(path) as file:
        return json.load(file)


def save(results: dict) -> None:
    slug = results["machine"]["slug"]
    with open(os.path.join(RESULTS, slug + ".json"), "w") as file:
        json.dump(results, file, indent=1, ensure_ascii=False)
        file.write("\n")
    write_report(results)


def write_report(results: dict) -> None:
    slug = results["machine"]["slug"]
    groups, peers = summary.models(results), summary.peers(results)
    folder = os.path.join(ROOT, "docs", "images")
    os.makedirs(folder, exist_ok=True)
    where = f"{results['machine']['cpu']}, {results['machine']['cpus']}"
    pictures = {
        f"peers-{slug}.svg": plot.bars(
            f"wok's speed divided by each peer's; over 1 wok is faster ({where})", groups,
            [f"beside {peer}" for peer in peers],
            lambda row, name: summary.ratio(row, name.removeprefix("beside ")), 1.0, ""),
        f"peers-{slug}-roof.svg": plot.bars(
            f"Percent of this machine's roof ({where})", groups, ["wok"] + peers,
            lambda row, name: (share := summary.share(row, name)) and 100 * share, None, ""),
    }
    for name, svg in pictures.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(svg)
    path = os.path.join(RESULTS, slug + ".md")
    text = f"# {where}\n"
    if os.path.isfile(path):
        with open(path) as file:
            text = file.read()
    part = report.section(results, [f"../../docs/images/{name}" for name in pictures])
    part = "\n".join(filter(None, [part, served_report.section(results)]))
    with open(path, "w") as file:
        file.write(report.insert(text, part))
    print(f"wrote {os.path.relpath(path, ROOT)}")


def main() -> None:
    args = parse()
    if args.command == "report":
        write_report(load(args.slug))
        return
    os.makedirs(args.folder, exist_ok=True)
    here = machine.describe(wok.kernels(args.wok))
    results = load(here["slug"])
    results["machine"] = here
    commit = wok.source_commit(ROOT)
    for model in args.models:
        name, path = models.resolve(ROOT, args.wok, model, os.path.join(args.folder, "models"))
        if args.command == "served":
            setting = programs.Setting(args.wok, args.llama_server, path, args.threads,
                                       args.limit_s, args.folder)
            served.measure(setting, name, args.loads, args.programs, args.rounds, commit, results,
                           lambda: save(results))
        else:
            settings = measure.Settings(args.wok, args.threads, args.rounds, args.peers,
                                        args.folder, commit)
            turns = tests.turns(args.prompt, args.steps, args.batch, args.depth)
            measure.compare(settings, name, path, turns, results, lambda: save(results))


if __name__ == "__main__":
    main()
