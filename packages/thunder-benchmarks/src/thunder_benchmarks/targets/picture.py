"""What was measured as a picture: bars for each target, one a compiler, as SVG that is as wide as a phone shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from thunder_benchmarks.targets.measuring import Measured

COLOURS = ("#8a94a3", "#e08a2e", "#3f7fe0", "#3aa66b", "#9b59b6", "#c0392b")
WIDTH, BAR, GAP, ROOM = 440, 16, 30, 96
COLUMNS = 3
"""How many names of compilers stand beside each other."""

STYLE = """
.bars text { font: 13px system-ui, sans-serif; fill: var(--md-default-fg-color, #1b1f24) }
.bars .quiet { font-size: 11px; fill: var(--md-default-fg-color--light, #5b6470) }
""".strip()


def drawn(found: Sequence[Measured], below: Sequence[str] = (), logarithmic: bool = False) -> str:
    """Return a picture of how long calls took, relative to the slowest of each target.

    Args:
        found: what was measured.
        below: lines of text, such as those of :func:`thunder_benchmarks.machine.circumstances`.
        logarithmic: whether a bar's length is the logarithm of the time, from a millisecond to the slowest of all.
    """
    compilers = list(dict.fromkeys(m.compiler for m in found))
    groups = list(dict.fromkeys((m.target, m.mode) for m in found))
    parts, y = [], 8
    for place, name in enumerate(compilers):
        x = 8 + place % COLUMNS * (WIDTH // COLUMNS)
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" rx="2" fill="{_colour(compilers, name)}"/>')
        parts.append(f'<text x="{x + 18}" y="{y + 11}">{escape(name)}</text>')
        y += 20 * (place % COLUMNS == COLUMNS - 1 or place + 1 == len(compilers))
    y += 8
    for group in groups:
        rows = [m for m in found if (m.target, m.mode) == group]
        slowest = max([m.microseconds for m in rows]) or 1.0
        parts.append(f'<text x="8" y="{y + 14}">{escape(", ".join(group))}</text>')
        y += 20
        for measured in rows:
            width = (WIDTH - ROOM) * (_length(measured, found) if logarithmic else measured.microseconds / slowest)
            text = "not measured" if measured.why_not else _time(measured.microseconds)
            fill = _colour(compilers, measured.compiler)
            parts.append(f'<rect x="8" y="{y}" width="{width:.1f}" height="{BAR - 3}" rx="2" fill="{fill}"/>')
            parts.append(f'<text x="{width + 14:.1f}" y="{y + 11}" class="quiet">{text}</text>')
            y += BAR
        y += GAP - 20
    for line in below:
        y += 16
        parts.append(f'<text x="8" y="{y}" class="quiet">{escape(line)}</text>')
    y += 12
    size = f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    fits = 'style="max-width: 100%; height: auto" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="bars" {size} {fits}><title>Time of a call</title>'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


def _length(measured: Measured, found: Sequence[Measured]) -> float:
    slowest = max([m.microseconds for m in found])
    return math.log(max(measured.microseconds, 1e3) / 1e3) / math.log(max(slowest, 2e3) / 1e3)


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:,.1f} s"
    return f"{microseconds / 1000:,.1f} ms" if microseconds >= 1000 else f"{microseconds:.0f} µs"


def _colour(compilers: list[str], name: str) -> str:
    return COLOURS[compilers.index(name) % len(COLOURS)]
