"""The section of bench/results/MACHINE.md that a run writes, from its JSON file."""

from __future__ import annotations

import summary

BEGIN = "<!-- written by make bench-peers: begin -->"
END = "<!-- written by make bench-peers: end -->"

NOTE = """\
`make bench-peers` wrote this section and the pictures
([how to repeat it](../../docs/performance.md)). Same file, same threads, turn by turn; tokens/s are
medians of the rounds. `ratio` is wok's speed divided by the peer's, the median of the rounds' own
ratios: under 1 (bold) wok is slower. `±` is the largest minus the smallest round, in percent of the
median, of wok / each peer: a ratio within it of 1 says nothing. `roof` is what this machine could do
at most, at the best speed of memory and of multiplication seen meanwhile; `of roof` is wok's share
of it. `others` is the share of CPU time that other processes, and other machines on the host, took
in the worst round: over 10 % a round is measured again a few times, and a row that still has more
says little. `pp512` is the prompt of one sequence, `tg32 ×16` 32 steps of 16 sequences together, `at
2048` with so many positions in the cache. OpenVINO samples greedily and the others do not sample; it
computes and caches in its own default precision, llama.cpp and wok cache in f16. It has no figure
for a prompt at a depth.
"""


def section(results: dict, pictures: list[str]) -> str:
    peers = summary.peers(results)
    machine = results["machine"]
    lines = ["## Side by side", "", NOTE,
             f"{machine['cpu']}, {machine['cpus']}, {machine['memory_gib']} GiB; wok's "
             f"{machine['kernels']} kernels; " + ", ".join(
                 results["versions"].get(peer, peer) for peer in peers) + ".", ""]
    lines += _overview(results, peers)
    lines += [line for picture in pictures for line in (f"![{_title(picture)}]({picture})", "")]
    for model, rows in summary.models(results).items():
        lines += _model(model, rows, peers, results["failures"].get(model, {}))
    return "\n".join(lines).rstrip() + "\n"


def _title(picture: str) -> str:
    return "Share of the roof by test" if "roof" in picture else "Ratios by test"


def _overview(results: dict, peers: list[str]) -> list[str]:
    """The geometric mean of the ratios, by model and by kind of test."""
    kinds = {"prefill": lambda row: row["test"].startswith("pp"),
             "decode, 1 sequence": lambda row: row["test"].startswith("tg") and row["batch"] == 1,
             "decode, more": lambda row: row["batch"] > 1}
    lines = ["| model | beside | " + " | ".join(kinds) + " |", "|---|---|" + "---|" * len(kinds)]
    for model, rows in summary.models(results).items():
        for peer in peers:
            failure = results["failures"].get(model, {}).get(peer)
            if failure:
                cells = ["does not load"] + [""] * (len(kinds) - 1)
            else:
                cells = [_mean_ratio(rows, peer, wanted) for wanted in kinds.values()]
            lines.append(f"| {model} | {peer} | " + " | ".join(cells) + " |")
    return lines + [""]


def _mean_ratio(rows: list[dict], peer: str, wanted) -> str:
    values = [summary.ratio(row, peer) for row in rows if wanted(row)]
    values = [value for value in values if value is not None]
    return _ratio(summary.geometric_mean(values)) if values else "—"


def _model(model: str, rows: list[dict], peers: list[str], failures: dict[str, str]) -> list[str]:
    loading = [peer for peer in peers if peer not in failures]
    commits = sorted({row["commit"] for row in rows})
    dates = sorted({row["date"] for row in rows})
    rounds = sorted({len(row["samples"]["wok"]) for row in rows})
    threads = sorted({row["threads"] for row in rows})
    lines = [f"### {model}", "",
             f"wok {', '.join(commits)}; {', '.join(dates)}; {_join(threads)} threads, "
             f"{_join(rounds)} rounds.", ""]
    head = ["test", "wok"] + [cell for peer in loading for cell in (peer, "ratio")]
    head += ["roof", "of roof", "± %", "others"]
    lines += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        cells = [summary.test_label(row), _speed(summary.median(row, "wok"))]
        for peer in loading:
            cells += [_speed(summary.median(row, peer)), _ratio(summary.ratio(row, peer))]
        cells += [_speed(row["roof"]), f"{summary.share(row, 'wok'):.0%}",
                  " / ".join(_percent(summary.spread(row, program))
                             for program in ["wok"] + loading),
                  f"{row['others']:.0%}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"{peer} does not load this file: “{message}”.\n"
              for peer, message in failures.items()]
    lines += [f"{summary.test_label(row)}, {peer}: “{message}”.\n"
              for row in rows for peer, message in row["errors"].items()
              if "no prompt on top of a cache" not in message]
    return lines


def _join(values: list[int]) -> str:
    return " or ".join(map(str, values))


def _speed(value: float | None) -> str:
    return "—" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _ratio(value: float | None) -> str:
    if value is None:
        return "—"
    return f"**{value:.2f}**" if value < 1 else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.0f}"


def insert(text: str, part: str) -> str:
    """The file's text with the section in its place: between the marks, or at the end."""
    block = f"{BEGIN}\n{part}{END}\n"
    if BEGIN not in text:
        return (text.rstrip() + "\n\n" if text else "") + block
    before, rest = text.split(BEGIN, 1)
    return before + block + rest.split(END, 1)[1].removeprefix("\n")
