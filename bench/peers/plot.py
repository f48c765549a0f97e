"""Bars as SVG, written by hand: one panel a model, one group of bars a test."""

from __future__ import annotations

import html
import math
from collections.abc import Callable

import summary

COLOURS = ["#1f6feb", "#d97706", "#0f9d74"]
PANEL, GAP, LEFT, TOP, BOTTOM = (470, 150), 24, 40, 64, 74
COLUMNS = 2
FONT = 'font-family="sans-serif" font-size="11"'


def bars(title: str, groups: dict[str, list[dict]], series: list[str],
         value: Callable[[dict, str], float | None], line: float | None, unit: str) -> str:
    """`value` of a row and a series; `line` is drawn across, where both are equal."""
    rows_of_panels = math.ceil(len(groups) / COLUMNS)
    width = COLUMNS * (PANEL[0] + GAP + LEFT)
    height = TOP + rows_of_panels * (PANEL[1] + BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>']
    for i, name in enumerate(series):
        x = LEFT + 130 * i
        out.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{COLOURS[i]}"/>'
                   f'<text x="{x + 15}" y="41">{html.escape(name)}</text>')
    for i, (model, rows) in enumerate(groups.items()):
        x = LEFT + i % COLUMNS * (PANEL[0] + GAP + LEFT)
        y = TOP + i // COLUMNS * (PANEL[1] + BOTTOM)
        out += _panel(x, y, model, rows, series, value, line, unit)
    return "\n".join(out + ["</svg>"]) + "\n"


def _panel(x: float, y: float, model: str, rows: list[dict], series: list[str],
           value: Callable[[dict, str], float | None], line: float | None, unit: str) -> list[str]:
    width, height = PANEL
    top = max([value(row, name) or 0 for row in rows for name in series] + [line or 0]) * 1.15
    step = _step(top)
    out = [f'<text x="{x}" y="{y + 10}" font-weight="bold">{html.escape(model)}</text>']
    y += 20
    height -= 20
    for i in range(int(top / step) + 1):
        level = y + height - i * step / top * height
        out.append(f'<line x1="{x}" x2="{x + width}" y1="{level:.1f}" y2="{level:.1f}" '
                   f'stroke="#e5e7eb"/><text x="{x - 5}" y="{level + 4:.1f}" text-anchor="end" '
                   f'fill="#6b7280">{i * step:g}{unit}</text>')
    group = width / len(rows)
    bar = min(24.0, group * 0.8 / len(series))
    for i, row in enumerate(rows):
        middle = x + (i + 0.5) * group
        for k, name in enumerate(series):
            amount = value(row, name)
            if amount is None:
                continue
            left = middle + (k - len(series) / 2) * bar
            tall = amount / top * height
            out.append(f'<rect x="{left:.1f}" y="{y + height - tall:.1f}" width="{bar - 1:.1f}" '
                       f'height="{tall:.1f}" fill="{COLOURS[k]}"/>'
                       f'<text x="{left + bar / 2:.1f}" y="{y + height - tall - 2:.1f}" '
                       f'font-size="8" text-anchor="middle">{_number(amount)}</text>')
        out.append(f'<text transform="translate({middle:.1f} {y + height + 12}) rotate(-30)" '
                   f'text-anchor="end" font-size="10">{html.escape(summary.test_label(row))}</text>')
    if line is not None:
        level = y + height - line / top * height
        out.append(f'<line x1="{x}" x2="{x + width}" y1="{level:.1f}" y2="{level:.1f}" '
                   f'stroke="#dc2626" stroke-dasharray="4 3"/>')
    return out


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def _step(top: float) -> float:
    """A round distance between lines, for at most six of them."""
    power = 10 ** math.floor(math.log10(top / 5)) if top > 0 else 1
    return next(power * m for m in (1, 2, 5, 10) if power * m * 6 >= top)
