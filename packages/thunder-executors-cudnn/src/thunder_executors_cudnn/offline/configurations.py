"""Problems to ask the library about: of each kind many, taken at regular steps from all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from thunder_executors_cudnn.problems import (
    ACTIVATIONS,
    Attention,
    AttentionGradient,
    Layout,
    Norm,
    NormGradient,
    Pages,
    Problem,
    Product,
)

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


def sequences() -> list[Problem]:
    """Return problems of attention whose sequences lie one after the other, or have keys and values in pages."""
    found: list[Problem] = []
    for (rows, columns), width, few, causal, exact in product(
        ((256, 256), (384, 128), (1, 512)), (64, 128, 72, 256), (8, 2), (True, False), (True, False)
    ):
        q, k = _packed(8, rows, width), _packed(few, columns, width)
        forward = Attention(q, k, k, None, q, causal, 0.0, width**-0.5, True, padded=True, packed=True)
        found += [replace(forward, statistics=False), AttentionGradient(forward, q, q, k, k, exact)]
    for rows, width, size, causal in product((1, 5, 256), (64, 128, 256), (1, 16, 64, 24, 128), (True, False)):
        query = Layout.dense((2, 8, rows, width), "bfloat16")
        key = Layout((2, 2, 8 * size, width), (2 * size * width, size * width, width, 1), "bfloat16")
        pages = Pages(40, size, 8)
        found.append(Attention(query, key, key, None, query, causal, 0.0, 0.1, False, padded=True, pages=pages))
    return found


def _packed(heads: int, length: int, width: int) -> Layout:
    return Layout((2, heads, length, width), (length * heads * width, width, heads * width, 1), "bfloat16")


def products() -> list[Problem]:
    """Return problems of products with what follows them."""
    sizes = ((512, 1024, 768), (37, 1001, 129), (1, 4096, 4096), (36, 1000, 128), (64, 8, 1))
    choices = product(sizes, ("bfloat16", "float16"), (True, False), ("none", *ACTIVATIONS), (True, False))
    return [Product(*size, dtype, bias, activation, gated) for size, dtype, bias, activation, gated in choices]


def configurations(count: int = 200) -> list[Problem]:
    """Return ``count`` problems, of ten each five of dense attention, two of sequences, two of norms, a product."""
    everything = list(product(LENGTHS, WIDTHS, HEADS, MASKS, (0.0, 0.1), ("bfloat16", "float16"), KINDS, (False, True)))
    step = 7919  # a prime that divides the number of all no more than once, so that every choice of each kind occurs
    tenth = count // 10
    chosen: list[Problem] = [attention(*everything[i * step % len(everything)]) for i in range(count - 5 * tenth)]
    for some, number in ((sequences(), 2 * tenth), (norms(), 2 * tenth), (products(), tenth)):
        chosen += [some[i * 31 % len(some)] for i in range(number)]
    return chosen


__all__ = ["attention", "configurations", "norms", "products", "sequences"]
