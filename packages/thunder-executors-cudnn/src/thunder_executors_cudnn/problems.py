"""What a graph of cuDNN computes, as data: a graph, its plans and their key follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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


Problem: TypeAlias = Attention | AttentionGradient | Norm | NormGradient

__all__ = ["Attention", "AttentionGradient", "Layout", "Norm", "NormGradient", "Problem"]
