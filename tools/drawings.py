"""The drawings of the documentation, as SVG in ``docs/pictures``: boxes, arrows and text, in the colours of the page.

    python tools/drawings.py            # writes them

Each is a function that returns parts; they are as wide as a phone shows them, so that nothing has to be scrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH, LINE = 440, 18

STYLE = """
.drawing text { font: 13px system-ui, sans-serif; fill: var(--md-default-fg-color, #1b1f24) }
.drawing .code { font: 12px ui-monospace, monospace }
.drawing .quiet { fill: var(--md-default-fg-color--light, #5b6470) }
.drawing rect { fill: var(--md-code-bg-color, #f5f6f8); stroke: var(--md-default-fg-color--lighter, #b8bec6) }
.drawing .strong { stroke: #3f7fe0; stroke-width: 2 }
.drawing .warm { stroke: #e08a2e; stroke-width: 2 }
.drawing path { fill: none; stroke: var(--md-default-fg-color--light, #5b6470); stroke-width: 1.5 }
.drawing .cut { stroke: #e08a2e; stroke-width: 2; stroke-dasharray: 6 5 }
.drawing .head { fill: var(--md-default-fg-color--light, #5b6470); stroke: none }
""".strip()


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text; its blanks stay."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}" xml:space="preserve">{escape(said)}</text>'


def box(x: float, y: float, width: float, lines: list[str], kind: str = "", inside: str = "") -> str:
    """Return a box around lines of text."""
    height = LINE * len(lines) + 14
    rectangle = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{kind}"/>'
    return rectangle + "".join([text(x + 12, y + 22 + LINE * i, line, inside) for i, line in enumerate(lines)])


def arrow(*points: tuple[float, float]) -> str:
    """Return a line through points, with a head at the last one."""
    (fx, fy), (x, y) = points[-2:]
    way = "M" + " L".join([f"{px} {py}" for px, py in points])
    dx, dy = (x > fx) - (x < fx), (y > fy) - (y < fy)
    head = f"M{x} {y} L{x - 8 * dx - 4 * dy} {y - 8 * dy - 4 * dx} L{x - 8 * dx + 4 * dy} {y - 8 * dy + 4 * dx} Z"
    return f'<path d="{way}"/><path d="{head}" class="head"/>'


def overview() -> tuple[int, list[str]]:
    """Return the height and the parts of: from a program to what runs."""
    return 436, [
        box(60, 8, 320, ["your function or nn.Module"], "strong"),
        arrow((220, 40), (220, 74)),
        text(232, 62, "captured once, as a whole", "quiet"),
        box(
            20,
            76,
            400,
            ["t0 = ltorch.matmul(a0, a1)  # float32[4, 4]", "t1 = ltorch.tanh(t0)  # float32[4, 4]"],
            "",
            "code",
        ),
        text(20, 144, "a program that you can print, read and run", "quiet"),
        arrow((220, 152), (220, 184)),
        box(60, 186, 320, ["differentiated · vectorised · sharded", "recomputed · quantised · your own transforms"]),
        arrow((220, 236), (220, 268)),
        text(232, 256, "each call goes to the first that accepts it", "quiet"),
        *[box(20 + 102 * i, 270, 94, [name]) for i, name in enumerate(("torch", "kernels", "native", "yours"))],
        *[arrow((67 + 102 * i, 302), (67 + 102 * i, 334)) for i in range(4)],
        box(
            20,
            336,
            400,
            ["prologue: is the program valid for this call?", "computation", "epilogue: side effects"],
            "strong",
        ),
        text(20, 424, "later calls run only this", "quiet"),
    ]


def life_of_a_call() -> tuple[int, list[str]]:
    """Return the height and the parts of: a hit and a miss."""
    stages = [
        "interpret: what was read becomes guards",
        "views and writes become values",
        "your transforms",
        "derivative: joint trace, cut in two",
        "executors: claim, fuse, order, free",
        "code for guards, calls, effects",
    ]
    parts = [
        box(20, 8, 400, ["compiled(x)"], "strong", "code"),
        arrow((100, 40), (100, 66)),
        box(20, 68, 160, ["dispatch: which", "program may fit?"]),
        arrow((100, 118), (100, 144)),
        box(20, 146, 160, ["guards: does it fit?"]),
        arrow((100, 178), (100, 474)),
        text(108, 204, "yes", "quiet"),
        arrow((180, 162), (212, 162), (212, 92), (230, 92)),
        text(186, 156, "no", "quiet"),
    ]
    y = 68
    for i, stage in enumerate(stages):
        lines = split(stage)
        parts.append(box(232, y, 200, lines))
        bottom = y + LINE * len(lines) + 14
        y = bottom + 18
        last = i + 1 == len(stages)
        parts.append(arrow((332, bottom), (332, y - 2)) if not last else arrow((332, bottom), (332, 492), (182, 492)))
    parts += [
        box(20, 476, 160, ["computation"], "strong"),
        arrow((100, 508), (100, 528)),
        box(20, 530, 160, ["epilogue"], "strong"),
        arrow((100, 562), (100, 582)),
        box(20, 584, 160, ["result"]),
        text(196, 514, "kept for the next call", "quiet"),
    ]
    return 624, parts


def split(said: str, most: int = 26) -> list[str]:
    """Return text in lines of so many letters."""
    lines = [""]
    for word in said.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def guards() -> tuple[int, list[str]]:
    """Return the height and the parts of: what a program read, and what is checked."""
    rows = [
        ("x.shape[0] > 1", "args[0] is float32[3, 4]"),
        ("if self.scaled:", "self.scaled is True"),
        ("LIMIT * x", "LIMIT == 2, of the module"),
    ]
    parts = [text(20, 22, "your program reads", "quiet"), text(236, 22, "so each call checks", "quiet")]
    for i, (read, checked) in enumerate(rows):
        y = 34 + 52 * i
        parts += [box(20, y, 176, [read], "", "code"), arrow((196, y + 16), (222, y + 16))]
        parts += [box(224, y, 208, [checked], "strong")]
    parts += [
        text(20, 206, "what it does not read is not checked", "quiet"),
        arrow((328, 170), (328, 224)),
        box(20, 226, 412, ["globals of model['LIMIT'] is 3, compiled for 2"], "warm"),
        text(20, 282, "a failed check says what changed; a program", "quiet"),
        text(20, 300, "for the new case is added to the first one", "quiet"),
    ]
    return 312, parts


def mutation() -> tuple[int, list[str]]:
    """Return the height and the parts of: in-place operations as values."""
    return 366, [
        text(20, 22, "as you wrote it", "quiet"),
        box(
            20,
            32,
            400,
            ["row = x[0]          # a view", "row.add_(1)         # x changes, too", "return x * 2"],
            "",
            "code",
        ),
        arrow((220, 100), (220, 132)),
        text(232, 120, "views and writes as values", "quiet"),
        box(20, 134, 400, ["t0 = x[0]", "t1 = t0 + 1", "t2 = x with t1 in row 0", "t3 = t2 * 2"], "strong", "code"),
        text(20, 238, "so in every pass, values never change", "quiet"),
        arrow((220, 248), (220, 274)),
        box(20, 276, 400, ["epilogue: t2 is written to x", "result: t3"], "strong"),
        text(20, 346, "computed directly into x if the old x is not read later", "quiet"),
    ]


def cut() -> tuple[int, list[str]]:
    """Return the height and the parts of: forward and backward from one trace."""
    return 420, [
        text(20, 22, "one joint trace: results and gradients", "quiet"),
        box(20, 34, 170, ["h = x @ w", "4 MB"]),
        box(20, 116, 170, ["a = gelu(h)", "4 MB"]),
        box(20, 198, 170, ["y = a.sum()", "4 bytes"]),
        arrow((105, 84), (105, 114)),
        arrow((105, 166), (105, 196)),
        box(250, 198, 170, ["da: ones like a", "no input needed"]),
        box(250, 116, 170, ["dh = da * gelu'(h)", "reads h"]),
        box(250, 34, 170, ["dw = x' @ dh", "reads x, an input"]),
        arrow((335, 198), (335, 168)),
        arrow((335, 116), (335, 86)),
        arrow((190, 69), (216, 69), (216, 141), (248, 141)),
        '<path class="cut" d="M220 28 L220 254"/>',
        text(120, 278, "forward", "quiet", "middle"),
        text(335, 278, "backward", "quiet", "middle"),
        box(
            20,
            294,
            400,
            [
                "what crosses the cut is saved: h, 4 MB, not a",
                "cut where least crosses; what is cheap to compute",
                "again is computed again, within your memory budget",
            ],
            "warm",
        ),
        text(20, 386, "x and w are inputs, so they exist anyway", "quiet"),
    ]


DRAWINGS: dict[str, tuple[str, Callable[[], tuple[int, list[str]]]]] = {
    "overview": ("From your function to what runs", overview),
    "call": ("A hit and a miss", life_of_a_call),
    "guards": ("What is read is checked", guards),
    "mutation": ("In-place operations become values", mutation),
    "cut": ("The joint trace, and where it is cut", cut),
}


def drawn(name: str) -> str:
    """Return a drawing as SVG."""
    title, draw = DRAWINGS[name]
    height, parts = draw()
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    fits = 'style="max-width: 100%; height: auto" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" {size} {fits}><title>{escape(title)}</title>'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


if __name__ == "__main__":
    for name in DRAWINGS:
        (PICTURES / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
