"""The part of bench/results/MACHINE.md about served loads."""

from __future__ import annotations

import statistics

NOTE = """\
`make bench-peers ARGS=--served` measured it ([how to repeat it](../../docs/performance.md)). wok
and llama-server answer over HTTP on loopback, one chat completion a connection, streamed,
temperature 1, `ignore_eos`. OpenVINO's pipeline is driven in its own process and samples greedily:
its figures have no HTTP, no JSON, no text and no sampling in them, which flatters it. Each program
is started afresh for a load, with its defaults and the same threads; llama-server with as many
slots as the load needs. ITL is the time between two pieces of text of one stream. Bold: wok's
figure where a peer's is better. `client` is the CPU time that the client took, in percent of one
CPU; `others` what other processes took of all CPUs. Medians of the rounds. `—`: no value; `>`: cut
at the load's time limit.
"""

# Load kind: title, and columns as (head, figure, digits, whether more is better or None).
TABLES = {
    "users": ("Short chats: prompts of 210 tokens, all different, 64 output tokens, closed loop", [
        ("out tok/s", "output_tokens_per_s", 1, True),
        ("TTFT p50 ms", "ttft_p50_ms", 0, False), ("p99", "ttft_p99_ms", 0, False),
        ("ITL p50 ms", "itl_p50_ms", 1, False), ("p99", "itl_p99_ms", 1, False),
        ("max", "itl_max_ms", 0, False)]),
    "shared": (
        "A shared prefix: 64 prompts of 2,000 tokens, 1,960 of them in common, 16 at a time, 16 "
        "output tokens", [
            ("answered", "requests", 0, True), ("seconds", "seconds", 1, False),
            ("out tok/s", "output_tokens_per_s", 1, True),
            ("TTFT p50 ms", "ttft_p50_ms", 0, False), ("p99", "ttft_p99_ms", 0, False)]),
    "arriving": (
        "Long prompts arrive: four streams of 800-token answers; after a while, every 2 s, a "
        "prompt of 3,980 tokens, four in all", [
            ("alone: tok/s", "quiet_tokens_per_s", 1, True),
            ("ITL p50 ms", "quiet_itl_p50_ms", 1, False), ("p99", "quiet_itl_p99_ms", 1, False),
            ("max", "quiet_itl_max_ms", 0, False),
            ("during: tok/s", "busy_tokens_per_s", 1, True),
            ("ITL p50 ms", "busy_itl_p50_ms", 1, False), ("p99", "busy_itl_p99_ms", 1, False),
            ("max", "busy_itl_max_ms", 0, False),
            ("p99 / alone's p50", "busy_p99_over_quiet_p50", 2, False),
            *((f"long {i} TTFT s", f"long{i}_ttft_s", 1, False) for i in (1, 2, 3, 4))]),
    "decode": (
        "Decode of all users together, 210-token prompts, 256 output tokens: while each has its "
        "first token and none its last", [
            ("tok/s", "decode_tokens_per_s", 1, True), ("ITL p50 ms", "itl_p50_ms", 1, False),
            ("depth", "depth", 0, None),
            ("`wok bench model` there", "bench_tokens_per_s", 1, None)]),
}


def section(results: dict) -> str:
    """Empty without served rows."""
    rows = list(results.get("served", {}).values())
    if not rows:
        return ""
    lines = ["## Served", "", NOTE]
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        lines += [f"### {model}, served", "", "; ".join(_facts(of_model)) + ".", ""]
        for kind, (title, columns) in TABLES.items():
            shown = [row for row in of_model if row["load"].rstrip("0123456789") == kind]
            if shown:
                lines += _table(title, columns, shown)
    return "\n".join(lines).rstrip() + "\n"


def median(row: dict, figure: str) -> float | None:
    values = [s[figure] for s in row["samples"] if s.get(figure) is not None]
    return statistics.median(values) if values else None


def _facts(rows: list[dict]) -> list[str]:
    versions = {row["version"] for row in rows if row["program"] != "wok" and row["version"]}
    commits = {row["commit"] for row in rows if row["commit"]}
    return [f"wok {', '.join(sorted(commits))}", *sorted(versions),
            ", ".join(sorted({row["date"] for row in rows})),
            f"{' or '.join(str(n) for n in sorted({row['threads'] for row in rows}))} threads"]


def _table(title: str, columns: list[tuple], rows: list[dict]) -> list[str]:
    rows = sorted(rows, key=lambda row: (len(row["load"]), row["load"], row["program"] != "wok",
                                         row["program"]))
    is_counted = len({row["load"] for row in rows}) > 1
    head = (["users"] if is_counted else []) + ["program"] + [column[0] for column in columns]
    lines = [f"{title}.", "", "| " + " | ".join(head + ["client", "others", "rounds"]) + " |",
             "|---|" + ("---|" if is_counted else "") + "---:|" * (len(columns) + 3)]
    for row in rows:
        peers = [other for other in rows if other["load"] == row["load"] and other is not row]
        cells = [row["load"].lstrip("abcdefghijklmnopqrstuvwxyz")] if is_counted else []
        cells += [row["program"]] + [_cell(row, peers, *column[1:]) for column in columns]
        cells += [_percent(median(row, "client_cpu")), _percent(median(row, "others")),
                  str(len(row["samples"]))]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"{row['program']}, {row['load']}: “{row['error']}”.\n"
              for row in rows if row.get("error")]
    return lines


def _cell(row: dict, peers: list[dict], figure: str, digits: int,
          is_more_better: bool | None) -> str:
    value = median(row, figure)
    if value is None:
        return "—"
    text = f"{value:,.{digits}f}"
    if figure == "seconds" and median(row, "unfinished"):
        text = f"> {text}"
    if row["program"] != "wok" or is_more_better is None:
        return text
    others = [other for peer in peers if (other := median(peer, figure)) is not None]
    is_worse = any(other > value if is_more_better else other < value for other in others)
    return f"**{text}**" if is_worse else text


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.0%}"
