"""Prims of neural networks that fall into no other family: embeddings, padding that repeats, products by groups."""

from __future__ import annotations

from typing import Literal

from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_ir.proxies import Dimension
from thunder_prims.checks import INEXACT, NUMERIC, check_accepts
from thunder_prims.operands import any_requires_grad, check_indices, check_operands
from thunder_prims.prim import prim

__all__ = ["embedding", "embedding_backward", "extend", "extend_backward", "grouped_mm", "one_hot"]


@prim(method="embedding")
def embedding(
    indices: TensorProxy, weight: TensorProxy, padding_index: int = -1, scale_grad_by_freq: bool = False
) -> TensorProxy:
    """Return the rows of ``weight`` at ``indices``.

    Args:
        indices: integers in ``0..n - 1``, any shape ``(...)``.
        weight: shape ``(n, k)``.
        padding_index: a row that gets no gradient; none if negative.
        scale_grad_by_freq: divide the gradient of a row by how often its index comes.

    Returns:
        shape ``(..., k)``.

    Source:
        ``torch.nn.functional.embedding``.
    """
    check_indices("embedding", weight, indices)
    if weight.ndim != 2:
        raise ShapeError(f"embedding needs a weight of shape (n, k), got {weight.type_string}")
    if not padding_index < weight.shape[0]:
        raise ShapeError(f"embedding in {weight.type_string} has no row {padding_index} as padding")
    return weight.like(shape=(*indices.shape, weight.shape[1]))


@prim(method="embedding_backward")
def embedding_backward(
    dy: TensorProxy, indices: TensorProxy, rows: Dimension, padding_index: int, scale_grad_by_freq: bool
) -> TensorProxy:
    """Return the gradient of the weight of ``embedding``.

    Args:
        dy: shape ``(..., k)``.
        indices: shape ``(...)``.
        rows: of the weight.
        padding_index, scale_grad_by_freq: as for ``embedding``.

    Returns:
        shape ``(rows, k)``.

    Source:
        ``torch.ops.aten.embedding_dense_backward``.
    """
    check_accepts("embedding_backward", dy, INEXACT)
    check_indices("embedding_backward", dy, indices)
    if dy.shape[:-1] != indices.shape:
        raise ShapeError(
            f"embedding_backward needs shapes (..., k) and (...), got {dy.type_string} and {indices.type_string}"
        )
    return dy.like(shape=(rows, dy.shape[-1]))


@prim(OpTags.CONSTANT_FOR_DERIVATIVE, method="one_hot")
def one_hot(indices: TensorProxy, classes: Dimension) -> TensorProxy:
    """Return ``int64`` ones at ``indices`` along a new last dimension of length ``classes``, zeros elsewhere."""
    check_indices("one_hot", indices, indices)
    if classes < 0:
        raise ShapeError(f"one_hot of {indices.type_string} needs a number of classes, got {classes}")
    return indices.like(shape=(*indices.shape, classes), dtype=dtypes.int64)


Border = Literal["reflect", "replicate", "circular"]


def _check_border(operation: str, a: TensorProxy, padding: tuple[tuple[int, int], ...], mode: str) -> None:
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f'{operation} knows the modes "reflect", "replicate" and "circular", got {mode!r}')
    if len(padding) != a.ndim or any([low < 0 or high < 0 for low, high in padding]):
        raise ShapeError(
            f"{operation} of {a.type_string} needs {a.ndim} pairs of numbers that are not negative, got {padding}"
        )


@prim(method="extend")
def extend(a: TensorProxy, padding: tuple[tuple[int, int], ...], mode: Border) -> TensorProxy:
    """Lengthen ``a`` by its own elements.

    Args:
        a: any dtype.
        padding: for each dimension, how many elements come in front and behind.
        mode: ``"reflect"`` mirrors at the outermost elements, ``"replicate"`` repeats them, ``"circular"`` goes on at
            the other end.

    Raises:
        ShapeError: a dimension is too short to be lengthened so much.

    Source:
        ``torch.nn.functional.pad``.
    """
    _check_border("extend", a, padding, mode)
    for length, pair in zip(a.shape, padding, strict=True):
        most = {"reflect": length - 1, "circular": length}.get(mode)
        if max(pair) > 0 and (length == 0 if most is None else max(pair) > most):
            raise ShapeError(f"extend of {a.type_string} in mode {mode!r} by {padding} needs longer dimensions")
    return a.like(shape=tuple([low + length + high for length, (low, high) in zip(a.shape, padding, strict=True)]))


@prim(method="extend_backward")
def extend_backward(dy: TensorProxy, padding: tuple[tuple[int, int], ...], mode: Border) -> TensorProxy:
    """Return the gradient of ``a`` of ``extend(a, padding, mode)``: add each element to the one that it repeats."""
    _check_border("extend_backward", dy, padding, mode)
    check_accepts("extend_backward", dy, NUMERIC)
    lengths = tuple([length - low - high for length, (low, high) in zip(dy.shape, padding, strict=True)])
    if any([n < 0 for n in lengths]):
        raise ShapeError(f"extend_backward of {dy.type_string} cannot have been lengthened by {padding}")
    return dy.like(shape=lengths)


@prim(OpTags.MATMUL, method="grouped_mm")
def grouped_mm(a: TensorProxy, b: TensorProxy, ends: TensorProxy) -> TensorProxy:
    """Multiply matrices group by group; the groups are consecutive parts of one dimension, of any lengths.

    Args:
        a, b: of one dtype, and of these shapes, for ``g`` groups:

            - ``(n, k)`` and ``(g, k, m)``: groups of rows of ``a``, to ``(n, m)``;
            - ``(g, n, k)`` and ``(k, m)``: groups of columns of ``b``, to ``(n, m)``;
            - ``(n, k)`` and ``(k, m)``: groups of what is summed over, to ``(g, n, m)``.
        ends: ``int32``, shape ``(g,)``: where each group ends, ascending. Rows or columns behind the last end are
            unspecified.

    Source:
        ``torch.nn.functional.grouped_mm``.
    """
    check_operands("grouped_mm", a, b)
    check_indices("grouped_mm", a, ends)
    fits = ends.ndim == 1 and a.ndim in (2, 3) and b.ndim in (2, 3) and a.ndim + b.ndim < 6
    if not fits or a.shape[-1] != b.shape[-2] or any([x.ndim == 3 and x.shape[0] != ends.shape[0] for x in (a, b)]):
        raise ShapeError(
            "grouped_mm needs shapes (n, k) and (g, k, m), (g, n, k) and (k, m), or (n, k) and (k, m), and ends of "
            f"shape (g,), got {a.type_string}, {b.type_string} and {ends.type_string}"
        )
    shape = (a.shape[-2], b.shape[-1])
    both = a.ndim == b.ndim == 2
    return a.like(shape=(ends.shape[0], *shape) if both else shape, requires_grad=any_requires_grad(a, b))
