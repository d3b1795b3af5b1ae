"""Problems to ask the library about: attention and norms of many kinds, taken at regular steps from all of them."""

from __future__ import annotations

from itertools import product

from thunder_executors_cudnn.problems import Attention, AttentionGradient, Layout, Norm, NormGradient, Problem

LENGTHS = ((256, 256), (257, 257), (1, 513), (128, 384), (300, 100))
WIDTHS = (
    (64, 64), (128, 128), (72, 72), (40, 40), (192, 128), (192, 192), (256, 256), (136, 136), (12, 12), (512, 512),
    (128, 64), (264, 264),
)  # fmt: skip
HEADS = ((8, 8), (8, 2), (6, 1), (8, 3))
MASKS = ("none", "causal", "rows", "whole", "heads")
KINDS = ("forward", "training", "gradient", "deterministic")


def attention(
    lengths: tuple[int, int], widths: tuple[int, int], heads: tuple[int, int], mask: str, dropout: float, dtype: str,
    kind: str, transposed: bool,
) -> Problem:  # fmt: skip
    """Return a problem of attention, or of its gradient."""
    (rows, columns), (width, value_width), (many, few) = lengths, widths, heads

    def tensor(heads: int, length: int, width: int) -> Layout:
        if not transposed:
            return Layout.dense((2, heads, length, width), dtype)
        return Layout((2, heads, length, width), (length * heads * width, width, heads * width, 1), dtype)

    shapes = {"rows": (2, 1, 1, columns), "whole": (1, 1, rows, columns), "heads": (2, many, rows, columns)}
    bias = Layout.dense(shapes[mask], dtype) if mask in shapes else None
    query, key, value = tensor(many, rows, width), tensor(few, columns, width), tensor(few, columns, value_width)
    out, statistics = tensor(many, rows, value_width), kind != "forward"
    forward = Attention(query, key, value, bias, out, mask == "causal", dropout, width**-0.5, statistics)
    if kind in ("forward", "training"):
        return forward
    return AttentionGradient(forward, out, query, key, value, kind == "deterministic")


def norms() -> list[Problem]:
    """Return problems of norms and of their gradients."""
    found: list[Problem] = []
    sizes = ((512, 1024), (1, 768), (37, 1000), (4096, 4096), (128, 1001))
    for (rows, columns), dtype, (centred, bias) in product(
        sizes, ("bfloat16", "float16", "float32"), ((True, True), (True, False), (False, False))
    ):
        for statistics in (True, False):
            found.append(Norm(rows, columns, dtype, centred, bias, statistics))
        found.append(NormGradient(Norm(rows, columns, dtype, centred, bias, True)))
    return found


def configurations(count: int = 200) -> list[Problem]:
    """Return ``count`` problems, a quarter of them norms, the same ones at every call."""
    everything = list(product(LENGTHS, WIDTHS, HEADS, MASKS, (0.0, 0.1), ("bfloat16", "float16"), KINDS, (False, True)))
    quarter = count // 4
    step = 7919  # a prime that divides the number of all no more than once, so that every choice of each kind occurs
    chosen: list[Problem] = [attention(*everything[i * step % len(everything)]) for i in range(count - quarter)]
    some = norms()
    return chosen + [some[i * 31 % len(some)] for i in range(quarter)]


__all__ = ["attention", "configurations", "norms"]
