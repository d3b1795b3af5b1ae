"""What cuDNN takes, known before it is asked: the words in which it declines are kept beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thunder_executors_cudnn.problems import (
    ACTIVATIONS,
    Attention,
    AttentionGradient,
    Norm,
    NormGradient,
    Problem,
    Product,
)

Rules = Iterator["Reason"]
HALVES = ("float16", "bfloat16")
OLDEST, HOPPER, BLACKWELL = 80, 90, 100
"""Compute capabilities, times ten: there are engines for attention from the first one on."""

NO_ENGINE = "No valid engine configs"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a problem is declined.

    Args:
        text: for the user.
        library: the words in which cuDNN declines it; ``""`` where we decline what it may take.
    """

    text: str
    library: str = ""


def why_not(problem: Problem, capability: int) -> Reason | None:
    """Return why cuDNN is not asked to plan a graph, or ``None``; see :func:`reasons`."""
    return next(reasons(problem, capability), None)


def reasons(problem: Problem, capability: int) -> Iterator[Reason]:
    """Yield everything that speaks against asking cuDNN to plan a graph; the library names one thing of several.

    Args:
        problem: what the graph shall compute.
        capability: the compute capability of the device, times ten, such as 90.
    """
    if capability < OLDEST:
        yield Reason(f"the device is of compute capability {capability / 10}, and at least {OLDEST / 10} is needed")
    match problem:
        case Attention():
            yield from _of_forward(problem, capability)
        case AttentionGradient():
            yield from _of_gradient(problem, capability)
        case Norm():
            yield from _of_norm(problem)
        case NormGradient():
            yield from _of_norm(problem.forward)
        case Product():
            yield from _of_product(problem, capability)


def _of_attention(a: Attention) -> Rules:
    query, key, value = a.query.shape, a.key.shape, a.value.shape
    tensors = (a.query, a.key, a.value)
    if any([len(t.shape) != 4 for t in tensors]):
        yield Reason("it takes query, key and value of four dimensions")
        return
    if any([0 in t.shape for t in tensors]):
        yield Reason("a dimension is empty")
    if any([t.dtype not in HALVES or t.dtype != a.query.dtype for t in tensors]):
        yield Reason("it takes query, key and value of one dtype, float16 or bfloat16")
    if query[0] != key[0] or key[:3] != value[:3] or query[3] != key[3]:
        yield Reason("sizes of query, key and value do not fit together")
    if key[1] == 0 or query[1] % key[1]:
        yield Reason(
            "the number of heads of the key does not divide that of the query",
            "number of heads for key and query must be a factor of number of heads for query",
        )
    if query[3] % 8 or value[3] % 8:
        yield Reason("the width of a head is no multiple of 8", "hidden_dim should be multiple of 8")
    if not 0 <= a.dropout < 1:
        yield Reason("dropout needs a probability below 1", "Dropout probability cannot be 1")
    if a.bias is not None:
        yield from _of_bias(a)
    if a.pages is not None and a.pages.size & (a.pages.size - 1):
        yield Reason("the size of a block is no power of two", "block size needs to be non-zero and a power of 2")
    if a.packed and (a.bias is not None or a.pages is not None or not a.padded):
        yield Reason("it takes sequences that lie one after the other without a mask that is added, and not in pages")


def _of_forward(a: Attention, capability: int) -> Rules:
    yield from _of_attention(a)
    widths = (a.query.shape[3], a.value.shape[3])
    single = a.query.shape[2] == 1 and max(widths) > 128 and widths != (256, 256)
    if capability >= BLACKWELL and a.dropout and single:
        yield Reason("dropout of a single row takes heads of at most 128, or of 256", NO_ENGINE)


def _of_bias(a: Attention) -> Rules:
    assert a.bias is not None
    scores = (*a.query.shape[:3], a.key.shape[2])
    if a.bias.dtype == "bool":
        yield Reason("it takes a mask that is added to the scores, not one of bools", "data type cannot be boolean")
    if a.bias.dtype != a.query.dtype:
        yield Reason("the mask has another dtype than the query")
    if len(a.bias.shape) != 4 or any([m not in (1, n) for m, n in zip(a.bias.shape, scores, strict=False)]):
        yield Reason("the mask does not broadcast to the scores")


def _of_gradient(g: AttentionGradient, capability: int) -> Rules:
    yield from _of_attention(g.forward)
    if g.forward.bias is not None and g.forward.bias.shape[2] != g.forward.query.shape[2]:
        yield Reason("gradients are wrong where a mask has one row for all")
    widths = (g.forward.query.shape[3], g.forward.value.shape[3])
    if capability >= BLACKWELL:
        yield from _of_gradient_on_blackwell(g, widths)
        return
    if g.forward.packed and g.deterministic and capability < HOPPER:
        yield Reason(
            "there is no deterministic gradient for sequences that lie one after the other",
            "Deterministic algorithm is not supported for bprop thd",
        )
    most = 128 if capability < HOPPER else 256
    if max(widths) > most:
        words = f"hidden_dim should be less than or equal to {most}"
        yield Reason(f"heads are at most {most} wide for a gradient", words)


def _of_gradient_on_blackwell(g: AttentionGradient, widths: tuple[int, int]) -> Rules:
    if g.forward.dropout and (g.deterministic or min(widths) >= 256):
        yield Reason(
            "there is no deterministic gradient of dropout",
            "Deterministic algorithm is not supported on blackwell",
        )
    if min(widths) > 256:
        yield Reason("heads are at most 256 wide for a gradient", NO_ENGINE)
    elif widths[0] == 192 and widths[1] != 128:
        yield Reason(
            "heads of width 192 need values of width 128 for a gradient", "d_v should be equal to 128 if d_qk is 192"
        )
    elif max(widths) > 128 and widths not in ((192, 128), (256, 256)):
        yield Reason(
            "heads are at most 128 wide for a gradient, or 256", "hidden_dim should be less than or equal to 128"
        )


def _of_product(p: Product, capability: int) -> Rules:
    if p.dtype not in HALVES:
        yield Reason("it takes float16 and bfloat16; products of float32 would be rounded to TF32")
    if p.activation != "none" and p.activation not in ACTIVATIONS:
        yield Reason(f"there is no activation {p.activation!r}; there are {', '.join(['none', *ACTIVATIONS])}")
    if 0 in (p.rows, p.inner, p.columns):
        yield Reason("a dimension is empty")
    elif p.dtype in HALVES and p.inner % 2 and capability < BLACKWELL:
        yield Reason("the number of elements that are added up is odd", NO_ENGINE)


def _of_norm(norm: Norm) -> Rules:
    if norm.dtype not in (*HALVES, "float32"):
        yield Reason("it takes float16, bfloat16 and float32")
    if norm.rows == 0 or norm.columns == 0:
        yield Reason("a dimension is empty")


__all__ = ["HALVES", "OLDEST", "Reason", "reasons", "why_not"]
