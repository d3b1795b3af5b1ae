"""Prims of neural networks that fall into no other family: embeddings, padding that repeats, products by groups."""

from __future__ import annotations

import math
from typing import Any, Literal

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_ir import OpTags, ShapeError, TensorProxy, dtypes
from thunder_ir.number_proxies import Dimension
from thunder_prims.axes import conjugate, filled, looped, moved, positions, restored, swapped
from thunder_prims.checks import INEXACT, NUMERIC, check_accepts
from thunder_prims.comparison import eq
from thunder_prims.conditional import where
from thunder_prims.conversion import convert_element_type
from thunder_prims.derivatives import linear
from thunder_prims.indexing import index_add, take
from thunder_prims.operands import any_requires_grad, check_indices, check_operands
from thunder_prims.prim import prim
from thunder_prims.shape import batch_first, reshape
from thunder_vmap import batching_rule

__all__ = ["embedding", "embedding_backward", "extend", "extend_backward", "grouped_mm", "one_hot"]


@prim(OpTags.MAY_FAIL)
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


@vjp_rule(embedding)
def embedding_vjp(
    indices: Any, weight: Any, padding_index: int = -1, scale_grad_by_freq: bool = False
) -> tuple[TensorProxy, Pullback]:
    """``dweight`` adds up ``dy`` by rows, in one operation."""

    def pullback(dy: TensorProxy) -> tuple[None, Any]:
        return None, embedding_backward(dy, indices, weight.shape[0], padding_index, scale_grad_by_freq)

    return embedding(indices, weight, padding_index, scale_grad_by_freq), pullback


@jvp_rule(embedding)
def embedding_jvp(indices: Any, weight: Any, *rest: Any) -> tuple[TensorProxy, Any]:
    """``dy`` is made of the rows of ``dweight``, whatever is said about gradients."""
    parameters, dweight = rest[: len(rest) // 2 - 1], rest[len(rest) // 2]
    return embedding(indices, weight, *parameters), take(dweight, indices, 0)


@batching_rule(embedding)
def embedding_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """One weight for all needs nothing moved; for one set of indices, the weights stand side by side."""
    (indices, weight, *parameters), (of_indices, of_weight, *_) = args, dims
    if of_weight is None:
        return embedding(indices, weight, *parameters), of_indices
    if of_indices is not None:
        return looped(embedding, size, args, dims)
    weight = moved(weight, of_weight, 1)
    rows, _, width = weight.shape
    y = embedding(indices, reshape(weight, (rows, size * width)), *parameters)
    return reshape(y, (*indices.shape, size, width)), indices.ndim


@prim(OpTags.NEW_MEMORY)
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


def _scaled_rows(a: Any, indices: Any, rows: Any, padding_index: int, scale_grad_by_freq: bool) -> Any:
    """Scale the rows of ``a``, one for each index, as ``embedding_backward`` does: some are zero, some shared out."""
    if scale_grad_by_freq:
        flat = reshape(indices, (math.prod(indices.shape),))
        counts = index_add(filled(a, 0, (rows,)), flat, filled(a, 1, flat.shape), 0)
        a = a / restored(take(counts, indices, 0), a.shape, (a.ndim - 1,))
    if padding_index >= 0:
        a = where(restored(eq(indices, padding_index), a.shape, (a.ndim - 1,)), 0, a)
    return a


@vjp_rule(embedding_backward)
def embedding_backward_vjp(
    dy: Any, indices: Any, rows: Any, padding_index: int, scale_grad_by_freq: bool
) -> tuple[TensorProxy, Pullback]:
    """Each row of ``dy`` gets that of the result to which it was added, scaled as it was."""

    def pullback(dweight: TensorProxy) -> Any:
        return _scaled_rows(take(dweight, indices, 0), indices, rows, padding_index, scale_grad_by_freq)

    return embedding_backward(dy, indices, rows, padding_index, scale_grad_by_freq), pullback


linear(embedding_backward)


@batching_rule(embedding_backward)
def embedding_backward_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """For one set of indices, the gradients stand side by side; otherwise each example has rows of its own."""
    (dy, indices, rows, padding_index, scale), (of_dy, of_indices, *_) = args, dims
    if of_indices is None:
        dy = moved(dy, of_dy, dy.ndim - 2)
        joined = reshape(dy, (*indices.shape, size * dy.shape[-1]))
        dweight = embedding_backward(joined, indices, rows, padding_index, scale)
        return reshape(dweight, (rows, size, dy.shape[-1])), 1
    if padding_index >= 0:  # of the many rows that would be padding, the operation knows one
        return looped(embedding_backward, size, args, dims)
    dy, indices = batch_first(dy, of_dy, size), batch_first(indices, of_indices, size)
    own = indices + convert_element_type(positions(indices, indices.shape, 0), indices.dtype) * rows
    dweight = embedding_backward(dy, own, size * rows, padding_index, scale)
    return reshape(dweight, (size, rows, dy.shape[-1])), 0


@prim(OpTags.CONSTANT_FOR_DERIVATIVE, OpTags.MAY_FAIL)
def one_hot(indices: TensorProxy, classes: Dimension) -> TensorProxy:
    """Return ``int64`` ones at ``indices`` along a new last dimension of length ``classes``, zeros elsewhere."""
    check_indices("one_hot", indices, indices)
    if classes < 0:
        raise ShapeError(f"one_hot of {indices.type_string} needs a number of classes, got {classes}")
    return indices.like(shape=(*indices.shape, classes), dtype=dtypes.int64)


@batching_rule(one_hot)
def one_hot_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension stays in place."""
    return one_hot(*args), dims[0]


Border = Literal["reflect", "replicate", "circular"]


def _check_border(operation: str, a: TensorProxy, padding: tuple[tuple[int, int], ...], mode: str) -> None:
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f'{operation} knows the modes "reflect", "replicate" and "circular", got {mode!r}')
    if len(padding) != a.ndim or any([low < 0 or high < 0 for low, high in padding]):
        raise ShapeError(
            f"{operation} of {a.type_string} needs {a.ndim} pairs of numbers that are not negative, got {padding}"
        )


@prim()
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


@prim()
def extend_backward(dy: TensorProxy, padding: tuple[tuple[int, int], ...], mode: Border) -> TensorProxy:
    """Return the gradient of ``a`` of ``extend(a, padding, mode)``: add each element to the one that it repeats."""
    _check_border("extend_backward", dy, padding, mode)
    check_accepts("extend_backward", dy, NUMERIC)
    lengths = tuple([length - low - high for length, (low, high) in zip(dy.shape, padding, strict=True)])
    if any([n < 0 for n in lengths]):
        raise ShapeError(f"extend_backward of {dy.type_string} cannot have been lengthened by {padding}")
    return dy.like(shape=lengths)


@vjp_rule(extend)
def extend_vjp(a: TensorProxy, padding: Any, mode: Border) -> tuple[TensorProxy, Pullback]:
    """``da`` adds up the elements of ``dy`` that repeat one."""
    return extend(a, padding, mode), lambda dy: extend_backward(dy, padding, mode)


@vjp_rule(extend_backward)
def extend_backward_vjp(dy: TensorProxy, padding: Any, mode: Border) -> tuple[TensorProxy, Pullback]:
    """The transpose of the transpose repeats again."""
    return extend_backward(dy, padding, mode), lambda da: extend(da, padding, mode)


linear(extend, extend_backward)


@batching_rule(extend)
def extend_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension stays as it is."""
    (a, padding, mode), (batch, *_) = args, dims
    return extend(a, (*padding[:batch], (0, 0), *padding[batch:]), mode), batch


@batching_rule(extend_backward)
def extend_backward_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """The batch dimension stays as it is."""
    (dy, padding, mode), (batch, *_) = args, dims
    return extend_backward(dy, (*padding[:batch], (0, 0), *padding[batch:]), mode), batch


@prim(OpTags.MATMUL)
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


@vjp_rule(grouped_mm)
def grouped_mm_vjp(a: TensorProxy, b: TensorProxy, ends: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = dy @ b.mH`` and ``db = a.mH @ dy``, group by group."""

    def pullback(dy: TensorProxy) -> tuple[Any, Any]:
        return grouped_mm(dy, swapped(conjugate(b)), ends), grouped_mm(swapped(conjugate(a)), dy, ends)

    return grouped_mm(a, b, ends), pullback


@jvp_rule(grouped_mm)
def grouped_mm_jvp(a: Any, b: Any, ends: Any, da: Any, db: Any, _: None) -> tuple[TensorProxy, Any]:
    """``dy = da @ b + a @ db``, group by group."""
    y = grouped_mm(a, b, ends)
    if da is None or db is None:
        return y, grouped_mm(a, db, ends) if da is None else grouped_mm(da, b, ends)
    return y, grouped_mm(da, b, ends) + grouped_mm(a, db, ends)


@batching_rule(grouped_mm)
def grouped_mm_batching(size: Any, args: Any, dims: Any) -> tuple[TensorProxy, int]:
    """One product for each example: the groups of several do not follow one another."""
    return looped(grouped_mm, size, args, dims)
