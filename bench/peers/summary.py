"""Medians, ratios and shares of the roof from the samples of a results file."""

from __future__ import annotations

import math
import statistics


def median(row: dict, program: str) -> float | None:
    samples = row["samples"].get(program)
    return statistics.median(samples) if samples else None


def ratio(row: dict, peer: str) -> float | None:
    """wok's speed divided by the peer's: the median of the rounds' own ratios, so that noise which
    lasts longer than a round falls out."""
    values = ratios(row, peer)
    return statistics.median(values) if values else None


def ratios(row: dict, peer: str) -> list[float]:
    return [a / b for a, b in zip(row["samples"]["wok"], row["samples"].get(peer, []))]


def spread(row: dict, program: str) -> float | None:
    """(largest - smallest) / median of the rounds."""
    samples = row["samples"].get(program)
    if not samples:
        return None
    return (max(samples) - min(samples)) / statistics.median(samples)


def share(row: dict, program: str) -> float | None:
    value = median(row, program)
    return value / row["roof"] if value is not None and row["roof"] > 0 else None


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def models(results: dict) -> dict[str, list[dict]]:
    """Rows by model: prefill first, then by depth and batch."""
    out: dict[str, list[dict]] = {}
    for row in results["rows"].values():
        out.setdefault(row["model"], []).append(row)
    for rows in out.values():
        rows.sort(key=lambda row: (row["depth"], row["test"][:2] != "pp", row["batch"]))
    return out


def peers(results: dict) -> list[str]:
    named = {peer for row in results["rows"].values() for peer in row["samples"]} - {"wok"}
    named |= {peer for failed in results["failures"].values() for peer in failed}
    return sorted(named)


def test_label(row: dict) -> str:
    label = row["test"]
    if row["test"].startswith("tg"):
        label += f" ×{row['batch']}"
    if row["depth"]:
        label += f" at {row['depth']}"
    return label
