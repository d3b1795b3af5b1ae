"""What was measured as a picture: bars for each target, one a compiler, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from thunder_benchmarks.targets.measuring import Measured

COLOURS = ("#7a8594", "#2f6fde", "#e08a2e", "#3aa66b", "#9b59b6", "#c0392b")
ROW, GAP, LEFT, WIDTH = 18, 16, 190, 860


def drawn(found: Sequence[Measured]) -> str:
    """Return a picture of how long calls took, relative to the slowest of each target.

    Args:
        found: what was measured.
    """
    compilers = list(dict.fromkeys(m.compiler for m in found))
    groups = list(dict.fromkeys((m.target, m.mode) for m in found))
    parts, y = [], 34
    for place, name in enumerate(compilers):
        x = LEFT + place * 160
        parts.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{_colour(compilers, name)}"/>')
        parts.append(f'<text x="{x + 18}" y="21">{escape(name)}</text>')
    for group in groups:
        rows = [m for m in found if (m.target, m.mode) == group]
        slowest = max([m.microseconds for m in rows]) or 1.0
        parts.append(f'<text x="8" y="{y + ROW * len(rows) / 2 + 5:.0f}">{escape(" ".join(group))}</text>')
        for measured in rows:
            width = (WIDTH - LEFT - 110) * measured.microseconds / slowest
            text = "not measured" if measured.why_not else f"{measured.microseconds:,.0f} µs"
            fill = _colour(compilers, measured.compiler)
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{ROW - 4}" fill="{fill}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{y + 12}">{text}</text>')
            y += ROW
        y += GAP
    style = "text { font: 13px sans-serif; fill: #1b1f24 }"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    return "\n".join(
        [head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"]
    )


def _colour(compilers: list[str], name: str) -> str:
    return COLOURS[compilers.index(name) % len(COLOURS)]
