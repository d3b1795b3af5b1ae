"""What a graph of cuDNN computes, as data: a graph, its plans and their key follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_approx_tanh", "silu": "swish"}
"""Functions of elements that may follow a product, and what the frontend calls them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor without its data.

    Args:
        shape: its dimensions.
        strides: in elements.
        dtype: PyTorch's name of it, such as ``"bfloat16"``.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @staticmethod
    def dense(shape: tuple[int, ...], dtype: str) -> Layout:
        """Return the layout with the last dimension fastest.

        Example:
            >>> from thunder_executors_cudnn.problems import Layout
            >>> Layout.dense((2, 3, 4), "float16").strides
            (12, 4, 1)
        """
        strides: list[int] = []
        step = 1
        for size in reversed(shape):
            strides.append(step)
            step *= max(size, 1)
        return Layout(shape, tuple(reversed(strides)), dtype)


@dataclass(frozen=True, slots=True)
class Pages:
    """Keys and values in blocks that lie anywhere in a pool: ``(pool, groups, size, width)``.

    Args:
        pool: number of blocks in it.
        size: of a block: rows.
        each: number of blocks of a sequence.
    """

    pool: int
    size: int
    each: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Scaled dot product attention.

    Args:
        query: ``(batch, heads, length, width)``.
        key: ``(batch, groups, other length, width)``; ``groups`` divides ``heads``.
        value: as ``key``, of a width of its own.
        bias: added to the scores; its dimensions are those of the scores, or 1. ``None``: nothing is added.
        out: of the result.
        causal: whether a row sees only the columns up to its own number.
        dropout: the probability of a weight to be dropped.
        scale: of the scores.
        statistics: whether the logarithms of the rows' sums of exponentials are wanted, which the gradient reads.
        padded: whether each sequence has lengths of its own, given when it runs; what is beyond is not read.
        packed: whether these sequences lie one after the other, without what would be beyond.
        pages: where keys and values lie, if in blocks; the strides of ``key`` and ``value`` are those of the pool then.
    """

    query: Layout
    key: Layout
    value: Layout
    bias: Layout | None
    out: Layout
    causal: bool
    dropout: float
    scale: float
    statistics: bool
    padded: bool = False
    packed: bool = False
    pages: Pages | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """The product of a matrix with a transposed one, and what is done to its elements before they are written.

    Args:
        rows: of the first matrix, and of the result.
        inner: number of columns of both.
        columns: rows of the second matrix, columns of the result.
        dtype: PyTorch's name of it, of all tensors.
        bias: whether a row is added.
        activation: ``"none"``, ``"relu"``, ``"gelu"``, ``"gelu_tanh"`` or ``"silu"``.
        gated: whether the result is multiplied by a matrix of its shape.
    """

    rows: int
    inner: int
    columns: int
    dtype: str
    bias: bool
    activation: str
    gated: bool


@dataclass(frozen=True, slots=True)
class AttentionGradient:
    """The gradients of :class:`Attention` for query, key and value.

    Args:
        forward: what was computed; its ``statistics`` are there.
        dout: the gradient of the result.
        dquery: how the gradient of the query is to be laid out.
        dkey: of the key.
        dvalue: of the value.
        deterministic: whether two runs must give the same bits.
    """

    forward: Attention
    dout: Layout
    dquery: Layout
    dkey: Layout
    dvalue: Layout
    deterministic: bool


@dataclass(frozen=True, slots=True)
class Norm:
    """A norm over the rows of a dense matrix.

    Args:
        rows: number of rows.
        columns: of elements in each.
        dtype: PyTorch's name of it; weight, bias and result are of it, too.
        centred: layer norm; else root-mean-square norm.
        bias: whether one is added.
        statistics: whether what the gradient reads is wanted.
    """

    rows: int
    columns: int
    dtype: str
    centred: bool
    bias: bool
    statistics: bool


@dataclass(frozen=True, slots=True)
class NormGradient:
    """The gradients of a :class:`Norm` for its input, weight and bias.

    Args:
        forward: what was computed; its ``statistics`` are there.
    """

    forward: Norm


Problem: TypeAlias = Attention | AttentionGradient | Norm | NormGradient | Product

__all__ = [
    "ACTIVATIONS",
    "Attention",
    "AttentionGradient",
    "Layout",
    "Norm",
    "NormGradient",
    "Pages",
    "Problem",
    "Product",
]
